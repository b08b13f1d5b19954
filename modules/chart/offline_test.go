package chart

import (
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

func TestOffline(t *testing.T) {
	calls := []string{"lookup", "now"}
	var here *Renderer // in this process
	target := func(text string) Input {
		return Input{Module: "web", Name: "web", Namespace: "web", Values: map[string]any{"a": "b"}, Chart: &Chart{Name: "web", Files: []File{
			{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 0.1.0\n")},
			{Path: "templates/a.yaml", Data: []byte(text)},
			{Path: "templates/NOTES.txt", Data: []byte("hello")},
		}}}
	}
	o := here.Offline(t.Context(), target("kind: {{ .Values.a }}\n{{ if not (lookup \"v1\" \"Secret\" \"\" \"\") | not }}\nx: {{ \"now\" }}{{ now | date \"2006\" }}\n{{ end }}"), chartutil.DefaultCapabilities, nil, calls...)
	if o.Err != nil || len(o.Files) != 1 || !strings.Contains(o.Files["web/templates/a.yaml"], "kind: b") {
		t.Errorf("%v %q", o.Err, o.Files)
	}
	if len(o.Calls) != 2 || o.Calls[0].Line != 2 || o.Calls[0].Function != "lookup" || o.Calls[1].Line != 3 || o.Calls[1].Function != "now" || o.Calls[1].File != "templates/a.yaml" {
		t.Errorf("%+v", o.Calls)
	}
	if o.Calls[1].Differs {
		t.Error("nothing differs: no Secret is found, so now is not asked")
	}
	if o := here.Offline(t.Context(), target("kind: {{ now | date \"05.999999999\" }}"), chartutil.DefaultCapabilities, nil, calls...); o.Err != nil || !o.Calls[0].Differs {
		t.Errorf("the time does not differ: %+v", o)
	}
	o = here.Offline(t.Context(), target("{{ if .Values.c }}\nx: {{ $.Values.d.e | default .Release.Name }}{{ end }}{{ .Values }}{{ $x := 1 }}{{ $x }}"), chartutil.DefaultCapabilities, nil, calls...)
	if want := []Read{{"templates/a.yaml", 1, 7, []string{"c"}}, {"templates/a.yaml", 2, 7, []string{"d", "e"}}}; !reflect.DeepEqual(o.Reads, want) {
		t.Errorf("%+v", o.Reads)
	}
	for text, broken := range map[string]bool{
		"a: {{ .Values.a ":          true,
		"a: {{ nofunction }}":       true,
		"a: {{ .Values.b.c }}":      false,
		"{{ fail \"no\" }}":         false,
		"{{ required \"x\" .None}}": false,
	} {
		o := here.Offline(t.Context(), target(text), chartutil.DefaultCapabilities, nil, calls...)
		if o.Err == nil || o.Broken != broken || o.Files != nil || strings.Contains(o.Err.Error(), "\n") {
			t.Errorf("%s: %+v", text, o)
		}
	}
}
