package live

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistration "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/webhook"
)

// eventually looks at something that sockets bring about, until it holds.
func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	late := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-late:
			f.Fatal(what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// freeAddress returns one that nobody listens at. The system gives its port to no connection: else another process
// might have it by the time it is wanted.
func freeAddress() string {
	for {
		address := fmt.Sprint("127.0.0.1:", 20_000+rand.N(10_000))
		if ln, err := net.Listen("tcp", address); err == nil {
			ln.Close()
			return address
		}
	}
}

// A process that is told to stop gives the Lease back while a review is under way, and answers that.
func TestTheLeaseIsGivenBackBeforeTheLastReview(t *testing.T) {
	address := freeAddress()
	f := &fixture{T: t, dir: t.TempDir(), ended: make(chan error, 1), namespace: "ops",
		webhooks: &webhook.Endpoint{Address: address, Reach: webhook.Reach{URL: "https://" + address}}}
	f.store = store.New(store.Options{Builtins: builtinKinds(), MakeNamespaces: true})
	f.config = &clientrest.Config{Host: "http://sim", Transport: f}
	f.driver = f.newDriver(sayingTree)
	f.start()
	c, err := admissionregistration.NewForConfig(f.driver.o.Client.UnfencedConfig())
	if err != nil {
		t.Fatal(err)
	}
	var url string
	f.eventually("no hook is registered", func() bool {
		list, err := c.ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return false
		}
		url = *list.Items[0].Webhooks[0].ClientConfig.URL
		return true
	})

	body, send := io.Pipe()
	type reply struct {
		text string
		err  error
	}
	answered := make(chan reply, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ExpectContinueTimeout: time.Hour}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
		if err != nil {
			answered <- reply{err: err}
			return
		}
		r.Header.Set("Expect", "100-continue") // the body is sent once somebody reads it
		resp, err := client.Do(r)
		if err != nil {
			answered <- reply{err: err}
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		answered <- reply{string(text), err}
	}()
	review, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{
		"uid": "1", "operation": "CREATE", "kind": map[string]any{"version": "v1", "kind": "Pod"},
		"resource": map[string]any{"version": "v1", "resource": "pods"}, "namespace": "x", "object": map[string]any{"kind": "Pod"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := send.Write(review[:10]); err != nil { // it is under way from here on
		t.Fatal(err)
	}
	f.stop()
	f.eventually("the Lease is held while a review is under way", func() bool { return f.holder() == "" })
	if err := f.write(); err == nil {
		t.Error("a write leaves the process after the Lease is given back")
	}
	if _, err := send.Write(review[10:]); err != nil {
		t.Fatal(err)
	}
	send.Close()
	got := <-answered
	if got.err != nil || !strings.Contains(got.text, `"message":"says `) {
		t.Errorf("the review is answered %q: %v", got.text, got.err)
	}
	if err := <-f.ended; err != nil {
		t.Error(err)
	}
}
