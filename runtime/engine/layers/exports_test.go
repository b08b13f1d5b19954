package layers

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// A value that a module exports concerns those that read it, from the start on and through each
// change, and goes with the module.
func TestExportsConcernTheirReaders(t *testing.T) {
	a := begin(t, map[string]string{"shop": "{{ .Values.global.exports.certManager.issuer.name }}", "other": "{{ .Values.own }}"})
	gen := &generation.Module{Name: "cert-manager", Key: "certManager", Decl: builtins.ModuleDecl{Exports: []string{"issuer", "token"}}}
	a.add("cert-manager", gen)
	a.want("an empty map is there", a.Compose(), "[cert-manager global shop]")
	issuer := a.of["cert-manager"]
	set := func(ops ...effect.ValueOp) []string {
		issuer.Set("cert-manager/f", ops)
		return issuer.Show()
	}
	a.want("moved", set(op("issuer.name", "main")[0]), "[cert-manager global shop]")
	a.want("seen", a.of["shop"].Seen(), "map[global:map[exports:map[certManager:map[issuer:map[name:main]]]] own:1]")
	a.want("not exported", set(op("issuer.name", "main")[0], op("x", int64(1))[0]), "[cert-manager]")
	a.want("not read", set(op("issuer.name", "main")[0], op("issuer.x", int64(1))[0]), "[cert-manager global]")

	// A secret is one for those that read it, too.
	secret := effect.ValueOp{Op: effect.OpSet, Path: []string{"token"}, Value: "s3cr3t-s3cr3t", Secrets: [][]string{{}}}
	set(secret, op("issuer.name", "main")[0])
	a.want("secrets", a.of["shop"].Secrets().Texts(), "[s3cr3t-s3cr3t]")

	// Of the config, too; and a reload of the global hooks changes nothing.
	a.want("the user sets it", a.Configure(values.Config{Sections: map[string]map[string]any{"cert-manager": {"issuer": map[string]any{"y": int64(1)}}}}), "[cert-manager global]")
	a.add("global", &generation.Module{Name: "global", Key: "global", Global: true})
	a.want("a reload", a.Compose(), "[]")

	layer := a.of["global"].Layer(exportsOf("cert-manager"))
	if len(layer) == 0 {
		t.Error("no layer holds it")
	}
	a.Drop(issuer)
	a.want("gone", a.Unexport("cert-manager"), "[global shop]")
	a.want("once", a.Unexport("cert-manager"), "[]")
}

// Without exports= nothing of a module is seen by others.
func TestWithoutExportsNothingIsSeen(t *testing.T) {
	a := begin(t, map[string]string{"web": "", "all": ""})
	a.of["web"].Set("web/f", op("x", int64(1)))
	a.want("moved", a.of["web"].Show(), "[web]")
	a.want("all", a.of["all"].View(), "map[global:map[] own:1]")
}

// A module that would export too much is told, and the others keep what it exported before.
func TestExportsHaveABound(t *testing.T) {
	a := begin(t, map[string]string{"shop": "{{ .Values.global.exports.db.text }}"})
	a.add("db", &generation.Module{Name: "db", Key: "db", Decl: builtins.ModuleDecl{Exports: []string{"text", "more"}}})
	a.Compose()
	db := a.of["db"]
	set := func(ops ...effect.ValueOp) error {
		if err := db.Propose().Check("db/f", "db/f", "d", ops); err != nil {
			return err
		}
		db.Set("db/f", ops)
		db.Show()
		return nil
	}
	if err := set(op("text", "small")[0]); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 40<<10)
	if err := set(op("text", large)[0], op("more", large)[0]); err == nil || err.Error() != "values refused: what module(exports = […]) names has 81 KiB as JSON; other modules may be given 64 KiB: export less, such as the name of a Secret or a ConfigMap" {
		t.Error(err)
	}
	if err := set(op("text", "small")[0], op("own", large+large)[0]); err != nil {
		t.Errorf("what is not exported has no bound: %v", err)
	}
	a.Configure(values.Config{Sections: map[string]map[string]any{"db": {"more": large + large}}})
	if ps := db.CheckHelm(); len(ps) != 1 {
		t.Errorf("the user sets it: %v", ps)
	}
	a.want("others see what was", a.of["shop"].Seen(), "map[global:map[exports:map[db:map[text:small]]] own:1]")
}
