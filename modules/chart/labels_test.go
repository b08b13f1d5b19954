package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
)

// Labels of a module are on each object; those that it has itself stay, and text that is no object does, too.
func TestLabel(t *testing.T) {
	labels := map[string]string{"heritage": "us"}
	for text, want := range map[string]string{
		"# a comment\nkind: Role\nmetadata: {name: a}\nspec: {port: 8080, mode: \"0755\", b: \"yes\"}\n---\n# nothing\n---\nkind: Role\nmetadata:\n  name: b\n  labels: {heritage: them, a: b}\n": "kind: Role\nmetadata:\n  labels:\n    heritage: us\n  name: a\nspec:\n  b: \"yes\"\n  mode: \"0755\"\n  port: 8080\n---\nkind: Role\nmetadata:\n  labels:\n    a: b\n    heritage: them\n  name: b\n",
		"kind: RoleList\nitems: [{metadata: {name: a}}]\n": "items:\n- metadata:\n    labels:\n      heritage: us\n    name: a\nkind: RoleList\n",
		"kind: Role\nmetadata: {labels: [a]}\n":            "kind: Role\nmetadata:\n  labels:\n  - a\n",
		"[":                                                "[",
		"# nothing":                                        "",
	} {
		got := Label([]File{{Path: "a.yaml", Data: []byte(text)}}, labels)
		if diff := cmp.Diff(want, string(got[0].Data)); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if same := Label([]File{{Path: "a.yaml", Data: []byte(text)}}, nil); string(same[0].Data) != text {
			t.Errorf("%s without labels is %s", text, same[0].Data)
		}
	}
	digests := map[string]bool{}
	for _, labels := range []map[string]string{nil, {}, {"a": "b"}, {"a": "c"}} {
		in, err := InputsOf(Input{Labels: labels}, Facts{}, chartutil.DefaultCapabilities)
		if err != nil {
			t.Fatal(err)
		}
		digests[in.Digest] = true
	}
	if len(digests) != 3 {
		t.Errorf("the digests are %v", digests)
	}
}
