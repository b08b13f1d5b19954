package helm

import (
	"context"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Options are what a chart sees as .Release.
type Options = chartutil.ReleaseOptions

// Lookup answers the lookup of templates: one object, or a list where there is no name. Nothing is there where the
// error is NotFound. A nil one finds nothing.
type Lookup func(apiVersion, kind, namespace, name string) (map[string]any, error)

// Enable takes the subcharts off a chart that the values switch off, and puts the values that it imports into values.
func Enable(ch *Chart, values map[string]any) error {
	return chartutil.ProcessDependenciesWithMerge(ch, values)
}

// Render gives what the templates of a chart render to, by their paths. It changes chart and values.
func Render(ch *Chart, values map[string]any, o Options, caps *Capabilities, lookup Lookup) (map[string]string, error) {
	if err := Enable(ch, values); err != nil {
		return nil, err
	}
	top, err := renderValues(ch, values, o, caps)
	if err != nil {
		return nil, err
	}
	var files map[string]string
	if lookup == nil {
		files, err = engine.Engine{}.Render(ch, top)
	} else {
		files, err = engine.RenderWithClientProvider(ch, top, provider(lookup))
	}
	for name, text := range files { // a template may be put together of files with byte order marks
		files[name] = strings.ReplaceAll(text, "\n\ufeff", "\n")
	}
	return files, err
}

// provider is a lookup as Helm wants it: as clients.
type provider Lookup

func (p provider) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return client{lookup: Lookup(p), apiVersion: apiVersion, kind: kind}, true, nil
}

// client is that of one kind; Helm uses these methods of it.
type client struct {
	dynamic.NamespaceableResourceInterface
	lookup                      Lookup
	apiVersion, kind, namespace string
}

// Namespace narrows what is asked.
func (c client) Namespace(name string) dynamic.ResourceInterface {
	c.namespace = name
	return c
}

// Get asks for one object.
func (c client) Get(
	_ context.Context, name string, _ metav1.GetOptions, _ ...string,
) (*unstructured.Unstructured, error) {
	content, err := c.lookup(c.apiVersion, c.kind, c.namespace, name)
	return &unstructured.Unstructured{Object: content}, err
}

// List asks for all of them.
func (c client) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	content, err := c.lookup(c.apiVersion, c.kind, c.namespace, "")
	list := &unstructured.UnstructuredList{}
	list.SetUnstructuredContent(content)
	return list, err
}
