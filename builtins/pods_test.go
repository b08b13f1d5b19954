package builtins

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

// podReader has the Pods of podsOf.
type podReader struct{ fakeReader }

func podOf(namespace, name string, labels map[string]any, containers ...any) map[string]any {
	list := make([]any, len(containers))
	for i, c := range containers {
		list[i] = map[string]any{"name": c}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": namespace, "labels": labels}, "spec": map[string]any{"containers": list}}
}

func (r podReader) Get(ctx context.Context, ref effect.Ref) (map[string]any, error) {
	if ref.Kind != "Pod" {
		return r.fakeReader.Get(ctx, ref)
	}
	switch ref.Namespace + "/" + ref.Name {
	case "web/db-0":
		p := podOf("web", "db-0", map[string]any{"app": "db"}, "db")
		p["spec"].(map[string]any)["initContainers"] = []any{map[string]any{"name": "setup"}}
		return p, nil
	case "web/two":
		return podOf("web", "two", nil, "a", "b"), nil
	case "web/said":
		p := podOf("web", "said", nil, "a", "b")
		p["metadata"].(map[string]any)["annotations"] = map[string]any{defaultContainer: "b"}
		return p, nil
	case "ops/starling-7f":
		return podOf("ops", "starling-7f", map[string]any{"app.kubernetes.io/name": "starling"}, "starling"), nil
	case "second/starling-7f": // of another instance
		return podOf("second", "starling-7f", map[string]any{"app.kubernetes.io/name": "starling"}, "starling"), nil
	case "ops/other":
		return podOf("ops", "other", nil, "a"), nil
	case "web/forbidden":
		return nil, unreadable{"not allowed to get pods"}
	case "web/broken":
		return nil, errors.New("the API server is tired")
	}
	return nil, nil
}

// fakeAnswerer answer with what they are asked.
type fakeAnswerer struct{}

func (fakeAnswerer) Exec(_ context.Context, e effect.Exec) (Executed, error) {
	switch e.Argv[0] {
	case "false":
		return Executed{Code: 3, Stdout: []byte("\xffout"), Stderr: []byte("err")}, nil
	case "gone":
		return Executed{}, &NoAnswerError{"the connection ended"}
	case "tired":
		return Executed{}, errors.New("the API server is tired")
	}
	out, err := json.Marshal(e)
	return Executed{Stdout: out}, err
}

func (fakeAnswerer) Logs(_ context.Context, q effect.LogQuery) ([]byte, error) {
	if q.Container == "setup" {
		return nil, &NoAnswerError{"setup is waiting to start"}
	}
	out, err := json.Marshal(q)
	return append(out, 0xff), err
}

func (fakeAnswerer) Ask(_ context.Context, q effect.Ask) (map[string]any, error) {
	spec, _ := q.Object["spec"].(map[string]any)
	switch spec["user"] {
	case "nobody":
		return nil, unreadable{"not allowed to create subjectaccessreviews"}
	case "tired":
		return nil, errors.New("the API server is tired")
	case "empty":
		return nil, nil
	}
	question, err := json.Marshal(q)
	if q.Ref.Name == "mute" {
		return map[string]any{"expirationTimestamp": "2026-01-01T00:00:00Z"}, nil
	}
	return map[string]any{"allowed": true, "question": string(question), "token": string(question)}, err
}

func podRun() *Run {
	run := newTestRun(new(int))
	run.Reader, run.Answerer = podReader{}, fakeAnswerer{}
	run.Grants = []Grant{
		{APIVersion: "v1", Kind: "Pod", Verbs: []string{"exec", "logs"}},
		{APIVersion: "v1", Kind: "Pod", Verbs: []string{"exec"}, Namespaces: []string{"ops", "second"}},
		{APIVersion: "v1", Kind: "Pod", Verbs: []string{"*"}, Namespaces: []string{"*"}},
		{APIVersion: "v1", Kind: "Secret", Verbs: []string{"get"}},
	}
	return run
}

func TestQuestionsToContainers(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`r = k8s.exec("db-0", ["psql", "-c", "select 1"]).json()`, `{"Pod": {"apiVersion": "v1", "kind": "Pod", "namespace": "web", "name": "db-0"}, "Container": "db", "Argv": ["psql", "-c", "select 1"], "Stdin": None, "Timeout": 10000000000, "MaxBytes": 1048576}`},
		{`r = k8s.exec({"name": "db-0", "namespace": "web"}, ["x"], container = "setup", stdin = b"\x00", timeout = "1m", max_bytes = 5).json()`, `"Container": "setup", "Argv": \["x"\], "Stdin": "AA==", "Timeout": 60000000000, "MaxBytes": 5}$`},
		{`r = k8s.exec({"kind": "Pod", "metadata": {"name": "other", "namespace": "ops"}}, ["x"], stdin = "").json()`, `"namespace": "ops", "name": "other"}, "Container": "a", "Argv": \["x"\], "Stdin": "",`},
		{`r = k8s.exec("said", ["x"]).json()["Container"]`, `^"b"$`},
		{`e = k8s.exec("db-0", ["false"]); r = [type(e), str(e), e.ok, e.code, e.error, e.stdout, e.stderr, e.bytes]`, `^\["execution", "<execution 3>", False, 3, None, "` + "\uFFFD" + `out", "err", b"\\xffout"\]$`},
		{`e = k8s.exec("db-0", ["gone"]); r = [str(e), e.ok, e.code, e.error, e.stdout]`, `^\["<execution without an end>", False, None, "Pod web/db-0: the connection ended", ""\]$`},
		{`r = k8s.exec("none", ["x"]).error`, `^"Pod web/none is not there"$`},
		{`r = k8s.exec("forbidden", ["x"]).error`, `^"not allowed to get pods"$`},
		{`r = k8s.exec("db-0", ["x"], container = "side").error`, `^"Pod web/db-0: it has no container \\"side\\", but db, setup"$`},
		{`r = k8s.logs("db-0")`, `"Previous\\":false,\\"Tail\\":0,\\"Since\\":0,\\"Timeout\\":10000000000,\\"MaxBytes\\":1048576}` + "\uFFFD" + `"$`},
		{`r = k8s.logs("db-0", tail = 5, since = "2m", previous = True)`, `"Previous\\":true,\\"Tail\\":5,\\"Since\\":120000000000,`},
		{`r = k8s.logs("db-0", container = "setup", default = None)`, `^None$`},
		{`r = k8s.logs("none", default = "nothing")`, `^"nothing"$`},
	} {
		v, err := exec(t, &Context{Phase: spec.InRun, Run: podRun(), Log: &memoryLog{}}, c.src)
		if err != nil || !regexp.MustCompile(c.want).MatchString(v.String()) && v.String() != c.want {
			t.Errorf("%s: %v, %v, want %s", c.src, v, err, c.want)
		}
	}
}

func TestQuestionsToContainersThatFail(t *testing.T) {
	for src, want := range map[string]string{
		`k8s.exec("db-0", [])`:                                            `k8s.exec: argv: names no command; write \["df", "-h"\]$`,
		`k8s.exec("db-0", [""])`:                                          `argv: names no command`,
		`k8s.exec("db-0", "df -h")`:                                       `argv: got string, want list of strings`,
		`k8s.exec("db-0", ["a\0b"])`:                                      `argv: an argument holds a NUL`,
		`k8s.exec("db-0", ["a" * 9000])`:                                  `argv: is longer than 8 KiB; what is long goes through stdin`,
		`k8s.exec("db-0", ["a", k8s.secret("there", "token")])`:           `argv: element 1: got secret, want string`,
		`k8s.exec("db-0", ["a"], timeout = "1h")`:                         `timeout: 1h0m0s is not between 0 and 5m0s`,
		`k8s.exec("db-0", ["a"], timeout = 0)`:                            `timeout: 0s is not between`,
		`k8s.exec("db-0", ["a"], max_bytes = 0)`:                          `max_bytes: 0 is not between 1 and 33554432`,
		`k8s.exec("db-0", ["a"], container = "A/B")`:                      `container: "A/B" is no valid name`,
		`k8s.exec("db/0", ["a"])`:                                         `name: "db/0" is no name of an object`,
		`k8s.exec(1, ["a"])`:                                              `pod: got int, want string, object or dict`,
		`k8s.exec({}, ["a"])`:                                             `pod: it has no name`,
		`k8s.exec({"name": "x", "namespace": 1}, ["a"])`:                  `pod: it has no name, or one that is no text`,
		`k8s.exec({"kind": "Node", "metadata": {"name": "x"}}, ["a"])`:    `pod: got a Node, want a Pod`,
		`k8s.exec({"name": "x"}, ["a"], namespace = "web")`:               `pod: the Pod says its namespace; leave namespace out`,
		`k8s.exec("two", ["a"])`:                                          `Pod web/two: container: it has 2; name one: a, b$`,
		`k8s.exec("broken", ["a"])`:                                       `the API server is tired`,
		`k8s.exec("db-0", ["tired"])`:                                     `Pod web/db-0: the API server is tired`,
		`k8s.exec("db-0", ["gone"]).json()`:                               `execution.json: there is no output: Pod web/db-0: the connection ended`,
		`k8s.exec("db-0", ["false"]).json()`:                              `execution.json: exit code 3: stdout is no JSON`,
		`k8s.exec("db-0", ["a"], namespace = "shop")`:                     `may not exec in Pod shop/db-0; add to the grants of module.star: grant\("v1", "Pod", verbs = \["exec"\], namespaces = \["shop"\]\)$`,
		`k8s.exec("starling-7f", ["starling", "get"], namespace = "ops")`: `may not exec in Pod ops/starling-7f: it belongs to Starling itself`,
		`k8s.exec("starling-7f", ["a"], namespace = "second")`:            `may not exec in Pod second/starling-7f: it belongs to Starling itself`,
		`k8s.logs("other", namespace = "ops")`:                            `may not read the log of Pod ops/other; add to the grants of module.star: grant\("v1", "Pod", verbs = \["logs"\], namespaces = \["ops"\]\)$`,
		`k8s.logs("other", namespace = "ops", default = "")`:              `may not read the log of`,
		`k8s.logs("db-0", tail = 0)`:                                      `tail: 0 is not between 1 and 1000000`,
		`k8s.logs("db-0", since = "500ms")`:                               `since: 500ms is no number of whole seconds, at least 1`,
		`k8s.logs("db-0", container = "setup")`:                           `Pod web/db-0: setup is waiting to start`,
		`k8s.logs("none")`:                                                `Pod web/none is not there`,
	} {
		_, err := exec(t, &Context{Phase: spec.InRun, Run: podRun(), Log: &memoryLog{}}, src)
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

// replacedReader has another Pod of the name at each look.
type replacedReader struct {
	podReader
	looks int
}

func (r *replacedReader) Get(ctx context.Context, ref effect.Ref) (map[string]any, error) {
	p, err := r.podReader.Get(ctx, ref)
	if r.looks++; p == nil || ref.Name == "other" && r.looks > 1 {
		return nil, err
	}
	p["metadata"].(map[string]any)["uid"] = strings.Repeat("x", r.looks)
	return p, err
}

// A Pod that is replaced between the look at it and the command is noticed.
func TestExecInAPodThatIsReplaced(t *testing.T) {
	for src, want := range map[string]string{
		`e = k8s.exec("db-0", ["x"]); r = [e.ok, e.code, e.error, e.stdout]`: `[False, None, "Pod web/db-0: another Pod has its name by now, and one of the two has run the command; look whether it has to run again", ""]`,
		`r = k8s.exec({"name": "other", "namespace": "ops"}, ["x"]).ok`:      `True`, // it is gone by now
	} {
		run := podRun()
		run.Reader = &replacedReader{}
		v, err := exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, src)
		if err != nil || v.String() != want {
			t.Errorf("%s: %v, %v, want %s", src, v, err, want)
		}
	}
}

// A grant with labels is for Pods that have them.
func TestQuestionsToContainersWithLabels(t *testing.T) {
	run := podRun()
	run.Grants = []Grant{{APIVersion: "v1", Kind: "Pod", Verbs: []string{"exec"}, Labels: "app=db"}}
	for src, want := range map[string]string{
		`k8s.exec("db-0", ["a"])`:                 "^$",
		`k8s.exec("two", ["a"], container = "a")`: `may not exec in Pod web/two, which is not as its grants ask \(labels app=db\)`,
	} {
		text := ""
		if _, err := exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, src); err != nil {
			text = err.Error()
		}
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s: %s, want %s", src, text, want)
		}
	}
}

// A review may read a log, and runs no command; without a cluster nobody answers.
func TestQuestionsToContainersElsewhere(t *testing.T) {
	run := podRun()
	if _, err := exec(t, &Context{Phase: spec.InReview, Run: run, Log: &memoryLog{}}, `k8s.logs("db-0")`); err != nil {
		t.Error(err)
	}
	if _, err := exec(t, &Context{Phase: spec.InReview, Run: run, Log: &memoryLog{}}, `k8s.exec("db-0", ["a"])`); err == nil {
		t.Error("a review runs a command")
	}
	for phase, want := range map[spec.Phase]string{
		spec.InLoad:    "is not available while a file is loading; call it from a hook",
		spec.InFilter:  "is not available in a filter, which may only look at its object; call it from a hook",
		spec.InEnabled: "is not available in enabled() and readiness(), which may only read",
		spec.InConvert: "is not available in a conversion, which may only look at its object",
		spec.InDesired: "is not available in desired, which neither reads nor writes",
	} {
		for name, src := range map[string]string{"k8s.exec": `k8s.exec("db-0", ["a"])`, "k8s.logs": `k8s.logs("db-0")`} {
			if _, err := exec(t, &Context{Phase: phase, Run: run, Log: &memoryLog{}}, src); err == nil || !strings.Contains(err.Error(), name+" "+want) {
				t.Errorf("%s in %s: %v, want %s", name, phase, err, want)
			}
		}
	}
	run.Answerer = nil
	v, err := exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, `r = [k8s.exec("db-0", ["a"]).error, k8s.logs("db-0", default = "none")]`)
	if want := `["Pod web/db-0: no container answers in a simulated cluster", "none"]`; err != nil || v.String() != want {
		t.Errorf("%v, %v, want %s", v, err, want)
	}
	_, err = exec(t, &Context{Phase: spec.InRun, Run: run, Log: &memoryLog{}}, `k8s.logs("db-0")`)
	if want := regexp.MustCompile(`no container answers in a simulated cluster; default= says what holds then$`); err == nil || !want.MatchString(err.Error()) {
		t.Errorf("%v, want %s", err, want)
	}
}

// "*" is all verbs for objects: a module that has it gets no shell by an update of Starling.
func TestAllVerbsHoldNoExec(t *testing.T) {
	for verb, want := range map[string]bool{"exec": false, "logs": false, "get": true, "deletecollection": true} {
		if got := verbAllowed(verb, []string{"*", "write"}); got != want {
			t.Errorf("%s is allowed: %t", verb, got)
		}
	}
	file := &File{Path: "web/module.star", Role: RoleModule}
	_, err := exec(t, &Context{Phase: spec.InLoad, File: file, Log: &memoryLog{}}, `grant("apps/v1", "Deployment", verbs = ["exec"])`)
	if want := `verbs: "exec" is for Pods alone: grant\("v1", "Pod", verbs = \["exec"\]\)`; err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("got %v, want %s", err, want)
	}
}
