package builtins

import (
	"bytes"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins/spec"
)

const lampCRD = "crd('example.org/v1', 'Lamp', {'b': 'string', 'a': field('integer', default = 1)}, columns = {'B': '.spec.b'}, versions = {'v1beta1': {'spec': {'a': 'string'}}})"

// The same call makes the same bytes: a definition that differs would be written again.
func TestCRDIsTheSameEachTime(t *testing.T) {
	var first []byte
	for range 20 {
		file := &File{Path: "web/module.star", Role: RoleModule}
		if _, err := exec(t, &Context{Phase: spec.InLoad, File: file, Log: &memoryLog{}}, lampCRD); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = file.CRDs[0].Data
		}
		if !bytes.Equal(first, file.CRDs[0].Data) {
			t.Fatalf("%s\n%s", first, file.CRDs[0].Data)
		}
		if at := file.CRDs[0].Pos; at != "x.star:1" {
			t.Errorf("declared at %s", at)
		}
	}
}

// Kinds belong to modules.
func TestCRDOutsideOfAModule(t *testing.T) {
	for path, want := range map[string]string{
		"web/hooks/a.star":   "crd: only module.star declares kinds; this is web/hooks/a.star",
		"global/module.star": "crd: global hooks are no module; declare the kind in the module.star of a module",
	} {
		file := &File{Path: path, Role: RoleHooks}
		if strings.HasSuffix(path, "module.star") {
			file.Role = RoleModule
		}
		if _, err := exec(t, &Context{Phase: spec.InLoad, File: file, Log: &memoryLog{}}, lampCRD); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
