package migrate

import (
	"go/ast"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/modules/tree"
)

// libraryHook is a hook that a library in Go registers, not the file itself.
type libraryHook struct {
	call string // as it stands there: tls_certificate.RegisterInternalTLSHook
	name string // with the package's own name
	args []ast.Expr
	more int // other calls in the file
	r    *goReader
}

// Error says that the file itself holds no config.
func (h *libraryHook) Error() string { return h.call + ", a library, registers its hook" }

// translation is a hook of a library: its bindings, and a body.
type translation struct {
	config *config
	loads  string // load(…) of the body
	body   string // lines for after fail(…), indented
	grants []raw  // those of its watches among them; nil: these alone
	todo   []string
}

// translate returns nil for a library that is not known. Known are those of Deckhouse that most of
// its modules call.
func (h *libraryHook) translate(module string) *translation {
	if len(h.args) == 0 {
		return nil
	}
	switch h.name {
	case "tls_certificate.RegisterInternalTLSHook", "tls-certificate.RegisterInternalTLSHookEM":
		return h.internalTLS(module)
	case "tls_certificate.RegisterOrderCertificateHook":
		return h.orderCertificate(module)
	case "generate_password.RegisterHook":
		return h.password(module)
	case "copy_custom_certificate.RegisterHook":
		return copyCertificate()
	case "copy_rbd_secret.RegisterHook":
		return copyRBDSecret()
	}
	return nil
}

// textIn is a field that is a text; "todo" where it is computed, which no object has for a name.
func textIn(fields map[string]any, name string) string {
	if s, is := fields[name].(string); is && s != "" {
		return s
	}
	return "todo"
}

// textsIn is a field that is a list of texts.
func textsIn(fields map[string]any, name string) (out []string) {
	list, _ := fields[name].([]any)
	for _, e := range list {
		if s, is := e.(string); is {
			out = append(out, s)
		}
	}
	return out
}

// inModule is a path of values without the key of the module.
func inModule(module, p string) string {
	return strings.TrimPrefix(strings.TrimSuffix(p, "."), tree.Key(module)+".")
}

// secretWatch is a watch of Secrets of these names.
func secretWatch(name string, in, objects []string, filter string) watched {
	return watched{common: common{Name: name}, APIVersion: "v1", Kind: "Secret", JQFilter: filter,
		NameSelector: &names{MatchNames: objects}, Namespace: &namespaces{NameSelector: &names{MatchNames: in}}}
}

// atOrder is a stage.
func atOrder(order float64) *float64 { return &order }

// kept is the grant for Secrets that the body of a hook keeps.
func kept(in, objects []string) raw {
	c := &call{name: "grant", args: []string{`"v1"`, `"Secret"`}}
	c.set("verbs", []string{"get", "list", "watch", "apply"})
	c.set("namespaces", in)
	c.set("names", objects)
	return raw(c.line())
}

// chartMakes is what is to do where the chart makes the Secret of a certificate out of values.
const chartMakes = "take the template of the Secret %s out of the chart, for the hook keeps it now with its key, and delete the old Secret, or give the hook another name"

// domainPrefixes are those that libraries replace by a domain of the cluster, from values.
var domainPrefixes = map[string]string{
	"ClusterDomainSAN": "%CLUSTER_DOMAIN%://",
	"PublicDomainSAN":  "%PUBLIC_DOMAIN%://",
}

// hosts are the names and addresses that a certificate is for, as arguments of @std//certs.star.
func hosts(all []string) (out []string) {
	var dns, ips []any
	for _, san := range all {
		if host, is := strings.CutPrefix(san, domainPrefixes["ClusterDomainSAN"]); is {
			dns = append(dns, raw(starlark(host+".")+` + values.get("global.discovery.clusterDomain", "cluster.local")`))
		} else if host, is := strings.CutPrefix(san, domainPrefixes["PublicDomainSAN"]); is {
			dns = append(dns, raw(`values.get("global.modules.publicDomainTemplate", "%s").replace("%s", `+starlark(host)+")"))
		} else if net.ParseIP(san) != nil {
			ips = append(ips, san)
		} else {
			dns = append(dns, san)
		}
	}
	if len(dns) > 0 {
		out = append(out, "dns = "+starlark(dns))
	}
	if len(ips) > 0 {
		out = append(out, "ips = "+starlark(ips))
	}
	return out
}

// internalTLS is a certificate of an authority that nobody else has.
func (h *libraryHook) internalTLS(module string) *translation {
	fields, _ := h.r.value(h.args[0], "").(map[string]any)
	space, secret := textIn(fields, "Namespace"), textIn(fields, "TLSSecretName")
	sans := textsIn(fields, "SANs")
	t := &translation{
		config: &config{BeforeHelm: atOrder(5), Kubernetes: []watched{secretWatch("secret", []string{space}, []string{secret}, ".metadata.resourceVersion")}},
		loads:  `load("@std//certs.star", "ensure")`,
		grants: []raw{kept([]string{space}, []string{secret})},
	}
	if len(sans) == 0 {
		sans = []string{"todo"}
		t.todo = append(t.todo, "its field SANs is computed: write dns = […]")
	}
	if !slices.ContainsFunc(sans, func(san string) bool { return net.ParseIP(san) == nil }) {
		sans = append(sans, "localhost") // ensure wants a name
	}
	call := &call{name: "ensure", args: []string{"(" + starlark(secret) + ", " + starlark(space) + ")"}}
	call.args = append(append(call.args, hosts(sans)...), "days = 3650")
	t.body = "    c = " + call.text(4) + "\n    values.set(" + starlark(inModule(module, textIn(fields, "FullValuesPathPrefix"))) + `, {"ca": c.ca, "crt": c.cert})` + "\n"
	t.todo = append(t.todo, strings.Replace(chartMakes, "%s", space+"/"+secret, 1))
	for _, field := range h.r.computed {
		if field != "SANs" && field != "Usages" {
			t.todo = append(t.todo, "its field "+field+" is computed: look at the new hook")
		}
	}
	if _, is := fields["BeforeHookCheck"]; is || slices.Contains(h.r.computed, "BeforeHookCheck") {
		t.todo = append(t.todo, "BeforeHookCheck says when it runs: write that into the body")
	}
	return t
}

// orderCertificate are certificates of an authority of the cluster.
func (h *libraryHook) orderCertificate(module string) *translation {
	list, _ := h.r.value(h.args[0], "").([]any)
	t := &translation{
		config: &config{BeforeHelm: atOrder(5), Schedule: []scheduled{{common{Name: "certificateCheck"}, "42 4 * * *"}}},
		loads:  `load("@std//certs.star", "request")`,
	}
	var spaces, secrets []string
	for _, e := range list {
		fields, is := e.(map[string]any)
		if !is {
			continue
		}
		space, secret := textIn(fields, "Namespace"), textIn(fields, "SecretName")
		spaces, secrets = append(spaces, space), append(secrets, secret)
		usages := textsIn(fields, "Usages")
		if len(usages) == 0 {
			usages = []string{"digital signature", "key encipherment", "client auth"}
		}
		signer := textIn(fields, "SignerName")
		if signer == "todo" {
			signer = "kubernetes.io/kube-apiserver-client"
		}
		call := &call{name: "request", args: []string{"(" + starlark(secret) + ", " + starlark(space) + ")", starlark(signer), starlark(usages)}}
		call.set("name", textIn(fields, "CommonName"))
		if groups := textsIn(fields, "Groups"); len(groups) > 0 {
			call.set("organizations", groups)
		}
		call.args = append(call.args, hosts(textsIn(fields, "SANs"))...)
		t.body += "    c = " + call.text(4) + "\n    _approve(c)\n    values.set(" + starlark(inModule(module, textIn(fields, "ValueName"))) + `, {"certificate": c.cert})` + "\n"
		t.todo = append(t.todo, strings.Replace(chartMakes, "%s", space+"/"+secret, 1))
	}
	if len(secrets) == 0 {
		return nil
	}
	slices.Sort(spaces)
	spaces = slices.Compact(spaces)
	t.config.Kubernetes = []watched{secretWatch("certificateSecrets", spaces, secrets, ".metadata.resourceVersion")}
	requests := &call{name: "grant", args: []string{`"certificates.k8s.io/v1"`, `"CertificateSigningRequest"`}}
	requests.set("verbs", []string{"get", "list", "watch", "apply", "patch", "delete"})
	requests.set("names", secrets)
	t.grants = []raw{kept(spaces, secrets), raw(requests.line())}
	t.loads += `

def _approve(c):
    """Approves the request itself, as the old hook did."""
    if c.pending != None:
        k8s.patch("certificates.k8s.io/v1", "CertificateSigningRequest", c.pending, subresource = "approval", merge = {
            "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "HookApprove", "message": "approved by a hook"}]},
        })`
	for _, field := range h.r.computed {
		t.todo = append(t.todo, "its field "+field+" is computed: look at the new hook")
	}
	return t
}

// password is one that the chart keeps in a Secret.
func (h *libraryHook) password(module string) *translation {
	space, secret := "todo", "todo"
	if len(h.args) >= 3 { // key, namespace, name, of older versions
		if s, is := h.r.value(h.args[1], "namespace").(string); is {
			space = s
		}
		if s, is := h.r.value(h.args[2], "name").(string); is {
			secret = s
		}
	} else if fields, is := h.r.value(h.args[0], "").(map[string]any); is {
		space, secret = textIn(fields, "Namespace"), textIn(fields, "SecretName")
	}
	no := flag(false)
	watch := secretWatch("password_secret", []string{space}, []string{secret}, `.data.auth // "" | @base64d | split("{PLAIN}") | .[1]`)
	watch.OnSynchronization, watch.Queue = &no, "/modules/"+module+"/generate_password"
	t := &translation{
		config: &config{BeforeHelm: atOrder(10), Kubernetes: []watched{watch}},
		body: `    found = ctx.snapshots["password_secret"]
    password = found[0].strip() if found else values.get("internal.auth.password", None)
    values.set("internal.auth.password", password or random.string(20))
`,
		todo: []string{"the library took the password away with auth.externalAuthentication: write that into the body, where users have it"},
	}
	if space == "todo" || secret == "todo" {
		t.todo = append(t.todo, "the Secret is computed: write its name in the place of todo")
	}
	return t
}

// copyCertificate puts a Secret that the user names among the values.
func copyCertificate() *translation {
	w := secretWatch("custom_certificates", []string{"d8-system"}, nil, "{name: .metadata.name, data: .data}")
	w.NameSelector, w.LabelSelector = nil, &labelSelector{}
	w.LabelSelector.MatchExpressions = append(w.LabelSelector.MatchExpressions, struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}{"owner", "NotIn", []string{"helm"}})
	return &translation{config: &config{BeforeHelm: atOrder(10), Kubernetes: []watched{w}}}
}

// copyRBDSecret copies Secrets that StorageClasses name.
func copyRBDSecret() *translation {
	no, never := flag(false), []string{}
	fields := &fieldSelector{}
	fields.MatchExpressions = append(fields.MatchExpressions, struct {
		Field    string `json:"field"`
		Operator string `json:"operator"`
		Value    string `json:"value"`
	}{"type", "Equals", "kubernetes.io/rbd"})
	return &translation{config: &config{AfterHelm: atOrder(20), Kubernetes: []watched{
		{common: common{Name: "rbd_storageclass"}, APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Events: &never, OnSynchronization: &no,
			JQFilter: `select(.provisioner == "kubernetes.io/rbd") | .parameters.userSecretName`},
		{common: common{Name: "rbd_secret"}, APIVersion: "v1", Kind: "Secret", Events: &never, OnSynchronization: &no, FieldSelector: fields},
	}}}
}

// wellKnown are texts of Kubernetes by the names that its packages of Go have for them.
func wellKnown(name string) (string, bool) {
	text, is := map[string]string{
		"UsageDigitalSignature": "digital signature", "UsageKeyEncipherment": "key encipherment", "UsageSigning": "signing",
		"UsageClientAuth": "client auth", "UsageServerAuth": "server auth", "UsageCertSign": "cert sign", "UsageAny": "any",
		"KubeletServingSignerName":             "kubernetes.io/kubelet-serving",
		"KubeAPIServerClientSignerName":        "kubernetes.io/kube-apiserver-client",
		"KubeAPIServerClientKubeletSignerName": "kubernetes.io/kube-apiserver-client-kubelet",
	}[name]
	return text, is
}

// libraryCall describes a call of a library.
func (r *goReader) libraryCall(call *ast.CallExpr) *libraryHook {
	h := &libraryHook{call: lastName(call.Fun), args: call.Args, r: r}
	h.name = h.call
	if of, is := call.Fun.(*ast.SelectorExpr); is {
		alias := lastName(of.X)
		h.call, h.name = strings.TrimPrefix(alias+"."+h.call, "."), alias+"."+h.name
		if p := r.at.imports[alias]; p != "" {
			h.name = path.Base(p) + "." + lastName(call.Fun)
		}
	}
	return h
}

// others says how many other hooks the file registers.
func (h *libraryHook) others() string { return strconv.Itoa(h.more) + " more are registered in it" }
