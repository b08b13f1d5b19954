package builtins

import (
	"regexp"
	"testing"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

func askRun() *Run {
	run := podRun()
	run.Instance = effect.Instance{Namespace: "ops", Name: "starling"}
	for _, kind := range []string{"SubjectAccessReview", "LocalSubjectAccessReview"} {
		run.Grants = append(run.Grants, Grant{APIVersion: "authorization.k8s.io/v1", Kind: kind, Verbs: []string{"create"}})
	}
	run.Grants = append(run.Grants,
		Grant{APIVersion: "v1", Kind: "ServiceAccount", Verbs: []string{"token"}, Names: []string{"ci", "mute"}},
		Grant{APIVersion: "v1", Kind: "ServiceAccount", Verbs: []string{"token"}, Names: []string{"marked"}, Labels: "app=ci", Namespaces: []string{"ci"}},
		Grant{APIVersion: "v1", Kind: "ServiceAccount", Verbs: []string{"token"}, Namespaces: []string{"ops"}},
		Grant{APIVersion: "v1", Kind: "ServiceAccount", Verbs: []string{"*"}, Namespaces: []string{"*"}},
		Grant{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview", Verbs: []string{"create"}, Labels: "app=ci"})
	return run
}

const asks = `def ask(kind = "SubjectAccessReview", group = "authorization", metadata = None, **rest):
    user = rest.pop("user", "jane")
    obj = {"apiVersion": group + ".k8s.io/v1", "kind": kind, "spec": {"user": user}}
    if metadata != None:
        obj["metadata"] = metadata
    return k8s.ask(obj, **rest)
`

func TestQuestionsToTheAPIServer(t *testing.T) {
	for src, want := range map[string]string{
		`a = ask(); r = [a.allowed, a["allowed"], a.get("denied")]`:           `^\[True, True, None\]$`,
		`r = ask(metadata = {"name": "x"}).question`:                          `^"{\\"Ref\\":{\\"apiVersion\\":\\"authorization.k8s.io/v1\\",\\"kind\\":\\"SubjectAccessReview\\",\\"name\\":\\"\\"},\\"Subresource\\":\\"\\",\\"Object\\":{\\"apiVersion\\":\\"authorization.k8s.io/v1\\",\\"kind\\":\\"SubjectAccessReview\\",\\"spec\\":{\\"user\\":\\"jane\\"}}}"$`,
		`r = ask("LocalSubjectAccessReview").question`:                        `\\"namespace\\":\\"web\\",\\"name\\":\\"\\"},.*\\"metadata\\":{\\"namespace\\":\\"web\\"}`,
		`r = ask(user = "nobody", default = {"allowed": False})["allowed"]`:   `^False$`,
		`r = ask(user = k8s.secret("there", "token")).allowed`:                `^True$`,
		`s = k8s.token("ci"); r = [type(s), str(s)]`:                          `^\["secret", "\*\*\*"\]$`,
		`r = reveal(k8s.token("ci"))`:                                         `\\"kind\\":\\"ServiceAccount\\",\\"namespace\\":\\"web\\",\\"name\\":\\"ci\\"},\\"Subresource\\":\\"token\\",.*\\"kind\\":\\"TokenRequest\\",\\"spec\\":{\\"expirationSeconds\\":3600}`,
		`r = reveal(k8s.token("ci", audiences = ["vault"], expires = "10m"))`: `\\"spec\\":{\\"audiences\\":\[\\"vault\\"\],\\"expirationSeconds\\":600}`,
	} {
		v, err := exec(t, &Context{Phase: spec.InReview, Run: askRun(), Log: &memoryLog{}}, asks+src)
		if err != nil || !regexp.MustCompile(want).MatchString(v.String()) {
			t.Errorf("%s: %v, %v, want %s", src, v, err, want)
		}
	}
}

func TestQuestionsToTheAPIServerThatFail(t *testing.T) {
	for src, want := range map[string]string{
		`ask("Pod")`:                            `k8s.ask: obj: authorization.k8s.io/v1 Pod is no question that the API server answers and does not keep; it takes LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectReview, SelfSubjectRulesReview, SubjectAccessReview, TokenReview; k8s.token asks for a token$`,
		`ask("TokenRequest", "authentication")`: `is no question`,
		`ask("SelfSubjectAccessReview")`:        `hook web/hooks/a.star:f may not ask SelfSubjectAccessReview; add to the grants of module.star: grant\("authorization.k8s.io/v1", "SelfSubjectAccessReview", verbs = \["create"\]\)`,
		`ask("LocalSubjectAccessReview", metadata = {"namespace": "other"})`: `may not ask .*namespaces = \["other"\]`,
		`ask("LocalSubjectAccessReview", metadata = {"namespace": "O"})`:     `obj: metadata.namespace: "O" is no valid name`,
		`ask("TokenReview", "authentication")`:                               `may not ask TokenReview, which is not as its grants ask \(labels app=ci\)`,
		`ask(user = "nobody")`:                                               `not allowed to create subjectaccessreviews`,
		`ask(user = "tired", default = 1)`:                                   `the API server is tired`,
		`ask(user = "empty")`:                                                `SubjectAccessReview: the answer has no status`,
		`k8s.ask({"kind": k8s.secret("there", "token")})`:                    `obj: kind: a secret cannot name an object`,
		`k8s.token("other")`:                                                 `may not ask for a token of ServiceAccount web/other; add to the grants of module.star: grant\("v1", "ServiceAccount", verbs = \["token"\]\)`,
		`k8s.token("default", namespace = "ops")`:                            `may not ask for a token of ServiceAccount ops/default: it belongs to Starling itself`,
		`k8s.token("marked", namespace = "ci")`:                              `ServiceAccount ci/marked is not there`,
		`k8s.token("ci", expires = "9m")`:                                    `expires: 9m0s is no number of whole seconds from 10m0s on`,
		`k8s.token("mute")`:                                                  `ServiceAccount web/mute: the answer holds no token`,
	} {
		_, err := exec(t, &Context{Phase: spec.InRun, Run: askRun(), Log: &memoryLog{}}, asks+src)
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
	run := askRun()
	run.Answerer = nil
	ctx := &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}
	if _, err := exec(t, ctx, asks+`ask()`); err == nil || !regexp.MustCompile(`a simulated cluster has no answer; default= says`).MatchString(err.Error()) {
		t.Errorf("without an answerer: %v", err)
	}
	if v, err := exec(t, ctx, asks+`r = k8s.token("ci", default = None)`); err != nil || v.String() != "None" {
		t.Errorf("without an answerer: %v, %v", v, err)
	}
}
