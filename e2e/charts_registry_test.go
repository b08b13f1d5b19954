package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
)

// chartServer is a registry and, below /stable/, a chart repository, by TLS. Both ask for a login.
type chartServer struct {
	t        *testing.T
	host     string
	client   *http.Client
	cert     string // a file
	dir      string // of the repository
	password atomic.Value
	down     atomic.Bool
}

// startRegistry builds and starts the registry of tools/, and returns its address.
func startRegistry(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "registry")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../tools", "-o", program, "./registry").CombinedOutput(); err != nil {
		t.Fatalf("go build ./registry: %v\n%s", err, out)
	}
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // its end is no result
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

func newChartServer(t *testing.T) *chartServer {
	t.Helper()
	s := &chartServer{t: t, dir: t.TempDir()}
	s.password.Store("first-word")
	mux := http.NewServeMux()
	mux.Handle("/v2/", httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: startRegistry(t)}))
	mux.Handle("/stable/", http.StripPrefix("/stable/", http.FileServer(http.Dir(s.dir))))
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case s.down.Load():
			w.WriteHeader(http.StatusForbidden)
		case user != "reader" || password != s.password.Load():
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	s.host, s.client, s.cert = strings.TrimPrefix(srv.URL, "https://"), srv.Client(), filepath.Join(t.TempDir(), "ca.pem")
	s.must(os.WriteFile(s.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	return s
}

func (s *chartServer) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// publish puts the chart web into the registry, and shop into the repository.
func (s *chartServer) publish(version string) {
	s.t.Helper()
	data, err := os.ReadFile(packedMirror(s.t, s.t.TempDir(), "web", version))
	s.must(err)
	client, err := registry.NewClient(registry.ClientOptHTTPClient(s.client), registry.ClientOptBasicAuth("reader", s.password.Load().(string)))
	s.must(err)
	_, err = client.Push(data, s.host+"/charts/web:"+version)
	s.must(err)
	packedMirror(s.t, s.dir, "shop", version)
	index, err := repo.IndexDirectory(s.dir, "")
	s.must(err)
	index.SortEntries()
	s.must(index.WriteFile(filepath.Join(s.dir, "index.yaml"), 0o644))
}

// login makes the Secret of `kubectl create secret docker-registry`, with today's password, and
// mounts it into dir as the kubelet does by deploy/starling.yaml.
func (s *chartServer) login(ns, dir string) {
	s.t.Helper()
	text, err := os.ReadFile("../deploy/starling.yaml")
	s.must(err)
	var volume *corev1.SecretVolumeSource
	for _, o := range manifests(s.t, string(text)) {
		if o.GetKind() != "Deployment" {
			continue
		}
		var d appsv1.Deployment
		s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d))
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Secret != nil {
				volume = v.Secret
			}
		}
	}
	if volume == nil {
		s.t.Fatal("deploy/starling.yaml mounts no Secret")
	}
	password := s.password.Load().(string)
	config, err := json.Marshal(map[string]any{"auths": map[string]any{s.host: map[string]any{
		"username": "reader", "password": password, "auth": base64.StdEncoding.EncodeToString([]byte("reader:" + password)),
	}}})
	s.must(err)
	secrets := shared.Client.CoreV1().Secrets(ns)
	_ = secrets.Delete(s.t.Context(), volume.SecretName, metav1.DeleteOptions{}) // that of before
	secret, err := secrets.Create(s.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: volume.SecretName}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: config},
	}, metav1.CreateOptions{})
	s.must(err)
	for _, item := range volume.Items {
		s.must(os.WriteFile(filepath.Join(dir, item.Path+".new"), secret.Data[item.Key], 0o600))
		s.must(os.Rename(filepath.Join(dir, item.Path+".new"), filepath.Join(dir, item.Path)))
	}
}

// fetch is `starling fetch` in dir, with the logins of this folder. It returns the lock.
func (s *chartServer) fetch(dir, logins string, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), program(), append([]string{"fetch", "--modules", dir}, args...)...)
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+s.cert, "DOCKER_CONFIG="+logins)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("starling fetch: %v\n%s", err, out)
	}
	lock, err := os.ReadFile(filepath.Join(dir, tree.LockFile))
	s.must(err)
	return string(lock)
}

// Charts of a registry and of a repository, both with a login: an author fetches them and commits the
// lock, and a process with the rights that `starling rbac` prints gets them by it. A newer version
// comes with the next lock: the releases stay while its login is wrong, and go on once the Secret has
// the new one. Then nobody needs the server.
func TestChartsWithALogin(t *testing.T) {
	t.Parallel()
	s := newChartServer(t)
	s.publish("0.1.0")
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	author, mine, logins := f.modules, t.TempDir(), t.TempDir()
	f.env = []string{"SSL_CERT_FILE=" + s.cert, "DOCKER_CONFIG=" + logins}
	files := map[string]string{
		"web/module.star":  fmt.Sprintf("module(enabled = True, chart = %q, version = \"~0.1\")\n", "oci://"+s.host+"/charts/web"),
		"web/values.yaml":  "text: mine\n",
		"shop/module.star": fmt.Sprintf("module(enabled = True, chart = %q, version = \"~0.1\")\n", "https://"+s.host+"/stable/shop"),
	}
	f.write(files)
	s.login(f.ns, mine)
	s.login(f.ns, logins)
	lock := s.fetch(author, mine)
	f.grantPrinted()

	f.modules = t.TempDir()
	f.write(trees(files, map[string]string{tree.LockFile: lock}))
	f.start()
	f.waitData("web", map[string]string{"text": "mine", "version": "0.1.0"})
	f.waitData("shop", map[string]string{"text": "plain", "version": "0.1.0"})

	s.password.Store("second-word")
	s.publish("0.1.1")
	s.login(f.ns, mine)
	f.write(map[string]string{tree.LockFile: s.fetch(author, mine, "--update")})
	f.waitReloadFailed("it cannot be fetched, and is tried again", "answers 401 Unauthorized", "response status code 401")
	for name, text := range map[string]string{"web": "mine", "shop": "plain"} {
		f.waitState(name, status.ModuleReady)
		f.waitData(name, map[string]string{"text": text, "version": "0.1.0"})
	}
	s.login(f.ns, logins)
	f.waitData("web", map[string]string{"text": "mine", "version": "0.1.1"})
	f.waitData("shop", map[string]string{"text": "plain", "version": "0.1.1"})
	for _, word := range []string{"forbidden", "first-word", "second-word"} {
		if strings.Contains(f.said(), word) {
			t.Errorf("the log holds %s:\n%s", word, f.said())
		}
	}

	f.eventually("the process that stands by has the archives, too", f.same)
	s.down.Store(true)
	f.restart()
	for _, name := range []string{"web", "shop"} {
		f.waitState(name, status.ModuleReady)
		f.waitRevision(f.ns, name, 2)
	}
}
