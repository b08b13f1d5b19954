package effect

import "testing"

func TestGuard(t *testing.T) {
	obj := map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{"app": "web", "odd": 1},
		"annotations": map[string]any{MadeByAnnotation: "web"},
	}}
	for _, test := range []struct {
		name  string
		guard *Guard
		obj   map[string]any
		want  bool
	}{
		{"no guard", nil, obj, true},
		{"no conditions", &Guard{}, obj, true},
		{"nothing is there", &Guard{Any: []Condition{{MadeBy: "web"}}}, nil, true},
		{"labels", &Guard{Any: []Condition{{Labels: "app in (web, db),!other"}}}, obj, true},
		{"other labels", &Guard{Any: []Condition{{Labels: "app=db"}}}, obj, false},
		{"a label that is no text", &Guard{Any: []Condition{{Labels: "odd"}}}, obj, false},
		{"made by it", &Guard{Any: []Condition{{MadeBy: "web"}}}, obj, true},
		{"made by another", &Guard{Any: []Condition{{MadeBy: "db"}}}, obj, false},
		{"both in one", &Guard{Any: []Condition{{MadeBy: "web", Labels: "app=db"}}}, obj, false},
		{"one of two", &Guard{Any: []Condition{{Labels: "app=db"}, {MadeBy: "web"}}}, obj, true},
		{"no metadata", &Guard{Any: []Condition{{MadeBy: "web"}}}, map[string]any{}, false},
		{"a broken selector", &Guard{Any: []Condition{{Labels: "=="}}}, obj, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.guard.Passes(nil, Ref{}, test.obj); got != test.want {
				t.Errorf("passes is %v", got)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	one := Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}
	for _, test := range []struct {
		write Write
		want  int
	}{
		{Write{Kind: WritePatch, Ref: one}, 1},
		{Write{Kind: WriteEvent, Ref: one}, 0},
		{Write{Kind: WriteSet, Set: &Set{Members: []Write{{Ref: one}, {Ref: one}}}}, 2},
	} {
		if got := len(test.write.Objects()); got != test.want {
			t.Errorf("%s changes %d objects, want %d", test.write.Kind, got, test.want)
		}
	}
}
