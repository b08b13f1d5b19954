package store

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorconfigurations "k8s.io/kube-aggregator/pkg/client/applyconfiguration"
)

// Builtins are the kinds that every API server has. They are the same in all
// stores, so a process makes them once and hands them to each store; what costs
// time (the schema of server-side apply) is read at the first write. They are safe
// for concurrent use.
type Builtins struct {
	kinds      []*kind
	sorted     []Kind // in the order of [Store.Kinds]
	byResource map[schema.GroupVersionResource]*kind
	byKind     map[schema.GroupVersionKind]*kind

	// Kinds that were made of CRDs, by their content: reading schemas and compiling
	// their rules takes milliseconds, and a hundred tests begin with the same ones.
	mu     sync.Mutex
	custom map[[sha256.Size]byte]*kind
}

// The types of built-in kinds are made once in a process, when somebody needs them.
var (
	builtinScheme   = sync.OnceValue(newBuiltinScheme)
	builtinTypes    = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(builtinScheme()) })
	aggregatorTypes = sync.OnceValue(func() managedfields.TypeConverter {
		return aggregatorconfigurations.NewTypeConverter(builtinScheme()) // of APIServices
	})
	definitionTypes = sync.OnceValue(newCRDTypes)
)

func newBuiltinScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // the tables of two libraries contradict each other
		}
	}
	return scheme
}

// NewBuiltins reads the table of built-in kinds.
func NewBuiltins() *Builtins {
	b := &Builtins{
		byResource: map[schema.GroupVersionResource]*kind{},
		byKind:     map[schema.GroupVersionKind]*kind{},
		custom:     map[[sha256.Size]byte]*kind{},
	}
	for line := range strings.SplitSeq(strings.TrimSpace(builtinTable), "\n") {
		b.add(strings.Fields(line))
	}
	for _, k := range b.kinds {
		b.sorted = append(b.sorted, k.Kind)
	}
	slices.SortFunc(b.sorted, inOrder)
	for from, to := range keptAs {
		b.byKind[from].keptAs = b.byKind[to]
	}
	return b
}

// add takes one line of the table.
func (b *Builtins) add(f []string) {
	for i := range f {
		if f[i] == "-" {
			f[i] = ""
		}
	}
	split := func(list string) []string {
		if list == "" {
			return nil
		}
		return strings.Split(list, ",")
	}
	has := func(letter string) bool { return strings.Contains(f[7], letter) }
	k := &kind{
		Kind: Kind{
			Group: f[0], Version: f[1], Plural: f[2], Kind: f[3], Singular: strings.ToLower(f[3]), Namespaced: f[4] == "N",
			ShortNames: split(f[5]), Categories: split(f[6]), Status: has("s"), Scale: has("c"), Builtin: true,
		},
		generation: has("g"), firstOnly: f[2] == "priorityclasses", versioned: has("v"), putCreates: has("p"), returnsGone: has("r"),
	}
	switch {
	case has("o"):
		k.verbs = []string{"create"}
	case has("l"):
		k.verbs = []string{"get", "list"}
	}
	converter := builtinTypes
	switch k.Group {
	case apiextensionsv1.GroupName:
		converter = func() managedfields.TypeConverter { return definitionTypes().converter }
	case apiregistrationv1.GroupName:
		converter = aggregatorTypes
	}
	k.typed = &typedKind{gvk: k.GVK(), scheme: builtinScheme()}
	k.types = converter
	b.kinds = append(b.kinds, k)
	b.byResource[k.GVR()] = k
	b.byKind[k.GVK()] = k
}

// Warm reads now what is otherwise read at the first write: about a tenth of a
// second, worth doing beside something else.
func (b *Builtins) Warm() {
	builtinTypes()
	definitionTypes()
}
