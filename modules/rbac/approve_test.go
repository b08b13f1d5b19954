package rbac

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
)

// Those that approve certificate requests need a right for their signers.
func TestSigners(t *testing.T) {
	const approve = "\nk8s.patch(\"certificates.k8s.io/v1\", \"CertificateSigningRequest\", \"a\", subresource = \"approval\", merge = {})"
	for name, tt := range map[string]struct{ code, want, lacks string }{
		"of request": {code: `request("a", "example.org/one", [])` + approve, want: "example.org/one"},
		"by keyword": {code: `request("a", usages = [], signer = "example.org/two")` + approve, want: "example.org/two"},
		"of objects": {code: `k8s.create({"spec": {"signerName": "example.org/three"}})` + approve, want: "example.org/three"},
		"of nobody":  {code: approve, lacks: "module web approves certificate requests, and its code names no signer"},
		"none":       {code: `request("a", "example.org/one", [])`},
	} {
		t.Run(name, func(t *testing.T) {
			code := "load(\"@std//certs.star\", \"request\")\n\ndef f(ctx):\n    " + strings.ReplaceAll(strings.TrimSpace(tt.code), "\n", "\n    ") + "\n\nhook(f, on = [startup])\n"
			read, err := tree.Read(fstest.MapFS{
				"web/module.star":  {Data: []byte("module(namespace = \"web\", grants = [grant(\"certificates.k8s.io/v1\", \"CertificateSigningRequest\", verbs = [\"apply\"])])\n")},
				"web/hooks/a.star": {Data: []byte(code)},
			}, tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := print(t, Options{Tree: read})
			rule := "# certificate requests that web approves\n- apiGroups: [certificates.k8s.io]\n  resources: [signers]\n  resourceNames: [" + tt.want + "]\n  verbs: [approve]\n"
			if is := strings.Contains(got, rule); is != (tt.want != "") || !strings.Contains(got, tt.lacks) || strings.Contains(got, "signers]") != is {
				t.Errorf("got %s", got)
			}
		})
	}
}
