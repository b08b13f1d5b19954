package migrate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestGoConfig(t *testing.T) {
	c, computed, filters, err := goConfig([]byte(`package hooks

const (
	key   = prefix + "/copy"
	prefix = "example.com"
)

var _ = sdk.RegisterFunc(&go_hook.HookConfig{
	OnAfterHelm: &go_hook.OrderedConfig{Order: 20},
	AllowFailure: true,
	Kubernetes: []go_hook.KubernetesConfig{{
		Name: "a", ApiVersion: apiVersion, Kind: "Secret", FilterFunc: keep,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "yes", "Name": "X"}},
		NamespaceSelector: &types.NamespaceSelector{NameSelector: &types.NameSelector{MatchNames: []string{"x", other()}}},
		ExecuteHookOnEvents: ptr.To(false),
		WaitForSynchronization: ptr.To(false),
	}},
}, run)
`), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := c.Kubernetes[0]
	if w.Name != "a" || w.Kind != "Secret" || w.APIVersion != "" || !w.AllowFailure || !w.WaitForSync.is(false) ||
		w.LabelSelector.MatchLabels["example.com/copy"] != "yes" || w.LabelSelector.MatchLabels["Name"] != "X" ||
		!slices.Equal(w.Namespace.NameSelector.MatchNames, []string{"todo"}) || w.Events == nil || len(*w.Events) > 0 {
		t.Errorf("got %+v", w)
	}
	if c.AfterHelm == nil || *c.AfterHelm != 20 || filters["a"] != "keep" {
		t.Errorf("got %+v, filters %v", c, filters)
	}
	slices.Sort(computed)
	if want := []string{"Kubernetes.ApiVersion", "Kubernetes.NamespaceSelector.NameSelector.MatchNames"}; !slices.Equal(computed, want) {
		t.Errorf("got %v, want %v", computed, want)
	}
}

// Texts that are put together of each other stay small.
func TestGoConfigLongTexts(t *testing.T) {
	source := "package hooks\nconst a0 = \"" + strings.Repeat("x", 1000) + "\"\n"
	for i := range 20 {
		source += fmt.Sprintf("const a%d = a%d + a%d\n", i+1, i, i)
	}
	_, computed, _, err := goConfig([]byte(source+"var _ = sdk.RegisterFunc(&C{Queue: fmt.Sprintf(\"%s%s\", a20, a2), Settings: a2}, run)"), "", nil)
	if err != nil || !slices.Contains(computed, "Queue") {
		t.Errorf("got %v, %v", computed, err)
	}
}

func TestGoConfigErrors(t *testing.T) {
	for source, want := range map[string]string{
		"package":       "it is no Go",
		"package hooks": "RegisterFunc is called 0 times",
		"package hooks\nvar _ = tls.RegisterTLSHook(x)":                                       "tls.RegisterTLSHook, a library, registers its hook",
		"package hooks\nvar _ = sdk.RegisterFunc(config, run)":                                "its config is computed",
		"package hooks\nvar _ = sdk.RegisterFunc(&C{}, a)\nvar _ = sdk.RegisterFunc(&C{}, b)": "RegisterFunc is called 2 times",
	} {
		if _, _, _, err := goConfig([]byte(source), "", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", source, err, want)
		}
	}
	// Constants that name each other end.
	_, computed, _, err := goConfig([]byte("package hooks\nconst a = b + b\nconst b = a + a\nvar _ = sdk.RegisterFunc(&C{Queue: a}, run)"), "", nil)
	if err != nil || !slices.Equal(computed, []string{"Queue"}) {
		t.Errorf("got %v, %v", computed, err)
	}
}

// No source ends the process.
func FuzzGoConfig(f *testing.F) {
	f.Add([]byte("package hooks\nvar _ = sdk.RegisterFunc(&go_hook.HookConfig{OnStartup: &go_hook.OrderedConfig{Order: 1}, Kubernetes: []K{{Name: \"a\", Values: []string{x}}}}, run)"))
	f.Fuzz(func(_ *testing.T, source []byte) {
		_, _, _, _ = goConfig(source, "", nil)
	})
}
