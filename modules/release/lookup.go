package release

import (
	"context"
	"errors"

	"helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// lookup is one lookup of a chart that another process renders; a list without a Name.
type lookup struct{ APIVersion, Kind, Namespace, Name string }

// answer is what it finds.
type answer struct {
	// Object is plain data as JSON, see packPlain.
	Object []byte
	// Missing: there is none. Err is why nobody knows.
	Missing bool
	Err     string
}

// ask answers a lookup as Helm would, from what the provider gives.
func (l lookup) ask(ctx context.Context, provider engine.ClientProvider) answer {
	var content map[string]any
	err := guard(func() (err error) { content, err = l.find(ctx, provider); return err })
	if apierrors.IsNotFound(err) {
		return answer{Missing: true}
	}
	if err != nil {
		return answer{Err: err.Error()}
	}
	data, err := packPlain(content)
	if err != nil {
		return answer{Err: err.Error()}
	}
	return answer{Object: data}
}

func (l lookup) find(ctx context.Context, provider engine.ClientProvider) (map[string]any, error) {
	all, namespaced, err := provider.GetClientFor(l.APIVersion, l.Kind)
	if err != nil {
		// Helm takes an error here for one whatever its kind.
		return nil, errors.New(err.Error())
	}
	var client dynamic.ResourceInterface = all
	if namespaced && l.Namespace != "" {
		client = all.Namespace(l.Namespace)
	}
	if l.Name == "" {
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.UnstructuredContent(), nil
	}
	obj, err := client.Get(ctx, l.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.UnstructuredContent(), nil
}
