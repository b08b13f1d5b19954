package main

import (
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// operatorNamespace is where Starling keeps its own objects.
const operatorNamespace = "starling-system"

// writers is how many clients make many objects at once.
const writers = 16

// adminConfig reads the kubeconfig. No limit of the client slows anyone down, and
// each config gets its own connection.
func adminConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	config.Dial = new(net.Dialer).DialContext
	return config, nil
}

func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := adminConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

func (b *bench) createNamespace(name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := b.client.CoreV1().Namespaces().Create(b.ctx, ns, metav1.CreateOptions{})
	return err
}

// namespaces makes namespaces. At the end of a section that has succeeded they are deleted with all that is in
// them, and waited for: the next one finds no work under way.
func (b *bench) namespaces(names ...string) {
	for _, name := range names {
		b.check(b.createNamespace(name))
	}
	api := b.client.CoreV1().Namespaces()
	b.Cleanup(func() {
		if b.failure != nil {
			return
		}
		for _, name := range names {
			b.check(api.Delete(b.ctx, name, metav1.DeleteOptions{}))
		}
		for _, name := range names {
			b.waitEvery(time.Second/10, "namespace "+name+" is gone", func() bool {
				_, err := api.Get(b.ctx, name, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
		}
	})
}

func (b *bench) configMaps(namespace string) corev1client.ConfigMapInterface {
	return b.client.CoreV1().ConfigMaps(namespace)
}

// createConfigMap makes a ConfigMap with one label.
func (b *bench) createConfigMap(namespace, name, label, value string, data map[string]string) error {
	_, err := b.configMaps(namespace).Create(b.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: value}}, Data: data,
	}, metav1.CreateOptions{})
	return err
}

// patchConfigMap merges a text into a ConfigMap, as somebody else than Starling.
func (b *bench) patchConfigMap(namespace, name, format string, args ...any) error {
	_, err := b.configMaps(namespace).Patch(b.ctx, name, types.MergePatchType, fmt.Appendf(nil, format, args...),
		metav1.PatchOptions{FieldManager: "somebody"})
	return err
}

// deleteConfigMaps deletes those with a label.
func (b *bench) deleteConfigMaps(namespace, label string) {
	all := metav1.ListOptions{LabelSelector: label}
	b.check(b.configMaps(namespace).DeleteCollection(b.ctx, metav1.DeleteOptions{}, all))
}

// freeAddress returns one on which nobody listens.
func (b *bench) freeAddress() string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	b.check(err)
	defer ln.Close()
	return ln.Addr().String()
}
