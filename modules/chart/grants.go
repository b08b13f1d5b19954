package chart

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

// A chart acts with all rights of the operator. So it holds and reads only what its module
// names (docs/decisions/0016).

// In is its name in a release of a namespace.
func (o Object) In(namespace string) effect.Ref {
	o.Namespace = cmp.Or(o.Namespace, namespace)
	return o.Ref
}

// MissingInstalls are the lines that would allow the objects, each once; wrong are objects of no kind that there is.
func MissingInstalls(t Input, objects []Object) (lines []string, wrong []Missing) {
	for _, o := range objects {
		if o.Test && !t.Test || builtins.MayInstall(t.Installs, o.In(t.Namespace), t.Namespace) {
			continue
		}
		if near := nearKind(o.APIVersion, o.Kind); near != "" {
			wrong = append(wrong, Missing{Kind: o.Kind, Near: near})
			continue
		}
		ref := o.In(t.Namespace)
		if line := builtins.InstallLine(ref, t.Namespace); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines, wrong
}

// offlineLookups finds nothing, and notes what the module does not allow.
type offlineLookups struct {
	target  Input
	missing []Missing
}

func (l *offlineLookups) find(apiVersion, kind, namespace, name string) (map[string]any, error) {
	ref := effect.Ref{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	// Without a cluster it is not known which kinds are in no namespace.
	if !builtins.MayLookUp(l.target.Lookup, ref, true, l.target.Namespace) &&
		(namespace != "" || !builtins.MayLookUp(l.target.Lookup, ref, false, l.target.Namespace)) {
		one := Missing{Line: builtins.LookupLine(ref, true, l.target.Namespace)}
		if !slices.Contains(l.missing, one) {
			l.missing = append(l.missing, one)
		}
	}
	if name == "" {
		return map[string]any{}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

// answer is what it finds.
type answer struct {
	// Object is plain data as JSON, see packPlain.
	Object []byte
	// Missing: there is none. Err is why nobody knows.
	Missing bool
	Err     string
}

// answerTo answers a lookup of another process; one without a Name is for a list.
func answerTo(l effect.Ref, find helm.Lookup) answer {
	content, err := find(l.APIVersion, l.Kind, l.Namespace, l.Name)
	if apierrors.IsNotFound(err) {
		return answer{Missing: true}
	}
	var data []byte
	if err == nil {
		data, err = packPlain(content)
	}
	if err != nil {
		return answer{Err: err.Error()}
	}
	return answer{Object: data}
}
