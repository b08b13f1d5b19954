package rest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var namespaceGVR = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// simulatedWorld answers the cases from a new store.
func simulatedWorld() parityWorld {
	s := store.New(store.Options{Builtins: store.NewBuiltins(), Convert: convertLamp})
	n := 0
	return &transportWorld{
		transport: rest.New(rest.Options{Store: s}), host: "http://sim", patience: time.Minute, converts: "{url: https://nobody.example.com}",
		spaces: func(t *testing.T) string {
			n++
			name := fmt.Sprintf("parity-%d-zz", n)
			_, err := s.Create(store.Target{GVR: namespaceGVR},
				map[string]any{"metadata": map[string]any{"name": name}}, store.WriteOptions{Manager: "parity"})
			if err != nil {
				t.Fatal(err)
			}
			return name
		},
		wait: func(_ *testing.T, look func() bool) {
			s.Settle()
			look()
		},
	}
}
