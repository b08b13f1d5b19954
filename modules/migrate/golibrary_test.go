package migrate

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
)

// Hooks that libraries register have a file: with bindings and a body where the library is known.
func TestHooksOfLibraries(t *testing.T) {
	const imports = "package hooks\n\nimport (\n\t\"github.com/deckhouse/deckhouse/go_lib/hooks/tls_certificate\"\n\tpw \"github.com/deckhouse/deckhouse/go_lib/hooks/generate_password\"\n\t\"github.com/deckhouse/deckhouse/go_lib/hooks/copy_custom_certificate\"\n\t\"github.com/deckhouse/deckhouse/go_lib/hooks/copy_rbd_secret\"\n)\n\n"
	for name, tt := range map[string]struct {
		source string
		want   []string // of the new hook
		module []string // of module.star
		notes  []string
	}{
		"a certificate": {
			`var _ = tls_certificate.RegisterInternalTLSHook(tls_certificate.GenSelfSignedTLSHookConf{
	SANs: tls_certificate.DefaultSANs([]string{"web.apps", "127.0.0.1", tls_certificate.ClusterDomainSAN("web.apps.svc"), tls_certificate.PublicDomainSAN("web")}),
	CN: "web", Namespace: "apps", TLSSecretName: "web-tls", FullValuesPathPrefix: "web.internal.cert",
	BeforeHookCheck: func(input *go_hook.HookInput) bool { return true },
})`,
			[]string{
				`load("@std//certs.star", "ensure")`, `before_helm(order = 5)`, `object_names = ["web-tls"]`,
				`("web-tls", "apps")`, `"web.apps.svc." + values.get("global.discovery.clusterDomain", "cluster.local")`, `replace("%s", "web")`, `ips = ["127.0.0.1"]`,
				`values.set("internal.cert", {"ca": c.ca, "crt": c.cert})`, `fail("not yet written: web/hooks/a.go", permanent = True)`,
			},
			[]string{`grant("v1", "Secret", verbs = ["get", "list", "watch", "apply"], namespaces = ["apps"], names = ["web-tls"])`},
			[]string{"web/hooks/a.go: take the template of the Secret apps/web-tls out of the chart", "web/hooks/a.go: BeforeHookCheck"},
		},
		"a certificate by the SDK": {
			"import tlscertificate \"github.com/deckhouse/module-sdk/common-hooks/tls-certificate\"\nconst cn = \"web\"\n" + `var _ = tlscertificate.RegisterInternalTLSHookEM(tlscertificate.GenSelfSignedTLSHookConf{
	SANs: tlscertificate.DefaultSANs([]string{fmt.Sprintf("%%CLUSTER_DOMAIN%%://%s.apps.svc", cn)}), CN: cn, Namespace: "apps", TLSSecretName: "web-tls", FullValuesPathPrefix: "web.internal.cert",
})`,
			[]string{`"web.apps.svc." + values.get("global.discovery.clusterDomain", "cluster.local")`, `values.set("internal.cert"`}, nil, nil,
		},
		"a certificate for computed names": {
			`var _ = tls_certificate.RegisterInternalTLSHook(tls_certificate.GenSelfSignedTLSHookConf{SANs: sans, Namespace: space(), TLSSecretName: "web-tls"})`,
			[]string{`dns = ["todo"]`, `namespaces = ["todo"]`}, nil,
			[]string{"web/hooks/a.go: its field SANs is computed", "web/hooks/a.go: its field Namespace is computed"},
		},
		"certificates of the cluster": {
			`var _ = tls_certificate.RegisterOrderCertificateHook([]tls_certificate.OrderCertificateRequest{
	{Namespace: "apps", SecretName: "web-client", CommonName: "web", Groups: []string{"auth"}, ValueName: "internal.client", ModuleName: "web"},
	{Namespace: "apps", SecretName: "web-node", CommonName: "system:node:web", SANs: []string{"web.apps"}, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth}, SignerName: certificatesv1.KubeletServingSignerName, ValueName: "internal.node", ModuleName: "web", WaitTimeout: 1 * time.Second},
})`,
			[]string{
				`load("@std//certs.star", "request")`, `schedule("42 4 * * *", name = "certificateCheck")`, `object_names = ["web-client", "web-node"]`, `"kubernetes.io/kube-apiserver-client"`,
				`"kubernetes.io/kubelet-serving"`, `["server auth"]`, `organizations = ["auth"]`, `dns = ["web.apps"]`, `_approve(c)`, `values.set("internal.node", {"certificate": c.cert})`,
			},
			[]string{`"CertificateSigningRequest"`}, []string{"web/hooks/a.go: take the template of the Secret apps/web-node"},
		},
		"a password": {
			`var _ = pw.RegisterHook(pw.HookSettings{ModuleName: "web", Namespace: "apps", SecretName: "auth"})`,
			[]string{`before_helm(order = 10)`, `object_names = ["auth"]`, `values.set("internal.auth.password", password or random.string(20))`},
			[]string{`grant("v1", "Secret", verbs = ["list", "watch"], namespaces = ["apps"])`}, []string{"web/hooks/a.go: the library took the password away"},
		},
		"a password as of old": {
			"const key, space = \"web\", \"apps\"\nvar hook = 1\nvar _ = pw.RegisterHook(key, space, \"auth\")",
			[]string{`namespaces = ["apps"]`, `object_names = ["auth"]`}, nil, nil,
		},
		"a copy of a certificate": {`var _ = copy_custom_certificate.RegisterHook("web")`, []string{`namespaces = ["d8-system"]`, `owner notin (helm)`}, nil, nil},
		"copies of Secrets":       {`var _ = copy_rbd_secret.RegisterHook("apps")`, []string{`after_helm(order = 20`, `name = "rbd_storageclass"`, `fields = "type=kubernetes.io/rbd"`}, nil, nil},
		"an unknown one": {
			"var _ = other.RegisterHook(1)\nvar _ = other.RegisterHook(2)",
			[]string{`fail("not yet written: web/hooks/a.go", permanent = True)`, "# hook(a, on = [])", "# The old hook:\n"}, nil,
			[]string{"web/hooks/a.go: other.RegisterHook, a library, registers its hook", "web/hooks/a.go: 1 more are registered in it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := AddonOperator(t.Context(), fstest.MapFS{
				"web/templates/a.yaml": {Data: []byte("a: 1\n")},
				"web/hooks/a.go":       {Data: []byte(imports + tt.source + "\n")},
			}, nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			text := func(file string) string {
				i := slices.IndexFunc(r.Files, func(f tree.File) bool { return f.Path == file })
				if i < 0 {
					t.Fatalf("there is no %s", file)
				}
				return string(r.Files[i].Data)
			}
			for file, wanted := range map[string][]string{"web/hooks/a.star": tt.want, "web/hooks/a_test.star": {"def test_a(t):"}, "web/module.star": append(tt.module, "not yet written: its hooks")} {
				for _, want := range wanted {
					if !strings.Contains(text(file), want) {
						t.Errorf("%s lacks %q:\n%s", file, want, text(file))
					}
				}
			}
			for _, want := range tt.notes {
				if !slices.ContainsFunc(r.Notes, func(n Note) bool { return strings.HasPrefix(n.String(), want) }) {
					t.Errorf("no note %q in %v", want, r.Notes)
				}
			}
			if strings.Contains(text("web/hooks/a.star"), "refuses") {
				t.Errorf("it is refused:\n%s", text("web/hooks/a.star"))
			}
			loads(t, r)
		})
	}
}
