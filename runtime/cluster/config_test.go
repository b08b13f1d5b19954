package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://example.test:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: one, context: {cluster: c, user: u}}, {name: two, context: {cluster: c, user: u}}]
current-context: one
`

func TestLoadConfig(t *testing.T) {
	dir := t.TempDir()
	good, broken := filepath.Join(dir, "good"), filepath.Join(dir, "broken")
	for file, text := range map[string]string{good: kubeconfig, broken: "a: [", filepath.Join(dir, ".kube", "config"): kubeconfig} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(dir, "missing")
	tests := []struct {
		name, flag, env, home, context string
		source, err                    string
	}{
		{name: "flag", flag: good, env: missing, source: `kubeconfig ` + good + `, context "one"`},
		{name: "context", flag: good, context: "two", source: `context "two"`},
		{name: "no such context", flag: good, context: "three", err: `kubeconfig ` + good + ` has no context "three" (it has one, two)`},
		{name: "missing file", flag: missing, err: "kubeconfig " + missing + " given by --kubeconfig does not exist"},
		{name: "a folder", flag: dir, err: "is a folder"},
		{name: "broken file", flag: broken, err: "kubeconfig " + broken + " cannot be read as a kubeconfig"},
		{name: "environment", env: missing + ":" + good, source: "kubeconfig " + good},
		{name: "missing in the environment", env: missing, err: "kubeconfig " + missing + " given by $KUBECONFIG does not exist"},
		{name: "home", home: dir, source: filepath.Join(dir, ".kube", "config")},
		{name: "nothing", home: filepath.Join(dir, "nobody"), err: "no Kubernetes cluster is configured: give --kubeconfig FILE"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.env)
			t.Setenv("HOME", test.home)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			cfg, source, err := LoadConfig(test.flag, test.context)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error is %v, want one line with %q", err, test.err)
				}
				return
			}
			if err != nil || cfg.Host != "https://example.test:6443" || !strings.Contains(source, test.source) {
				t.Errorf("got %v, %q, %v, want %q", cfg, source, err, test.source)
			}
		})
	}
}

func TestCheckReachable(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte("{}"))
	}))
	cfg := &rest.Config{Host: server.URL}
	ctx := context.Background()
	if err := CheckReachable(ctx, cfg); err != nil {
		t.Errorf("a server that answers: %v", err)
	}
	code = http.StatusUnauthorized
	if err := CheckReachable(ctx, cfg); err == nil || !strings.Contains(err.Error(), "does not accept our credentials") {
		t.Errorf("unauthorized: %v", err)
	}
	for _, code = range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusForbidden} {
		err := CheckReachable(ctx, cfg)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint("answers ", code)) || InTrouble(err) != (code != http.StatusForbidden) {
			t.Errorf("%d: %v, in trouble: %t", code, err, InTrouble(err))
		}
	}
	server.Close()
	want := "cannot reach the API server at " + server.URL + ": connection refused"
	if err := CheckReachable(ctx, cfg); err == nil || err.Error() != want {
		t.Errorf("closed port: %v, want %s", err, want)
	}
}

// A process that begins bears an error that may be another one in a moment, and not one that a person has to mend.
func TestInTrouble(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&url.Error{Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, true},
		{&url.Error{Err: syscall.ECONNRESET}, true},
		{&url.Error{Err: &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}}, true},
		{&url.Error{Err: io.EOF}, true},
		{&url.Error{Err: os.ErrDeadlineExceeded}, true},
		{fmt.Errorf("a request: %w", context.DeadlineExceeded), true},
		{&url.Error{Err: &net.DNSError{Name: "api", IsTimeout: true}}, true},
		{&url.Error{Err: &net.DNSError{Name: "api", IsTemporary: true}}, true},
		{&url.Error{Err: &net.DNSError{Name: "api", IsNotFound: true}}, false},
		{&url.Error{Err: x509.UnknownAuthorityError{}}, false},
		{context.Canceled, false},
		{errors.New("the kubeconfig is broken"), false},
	} {
		if got := InTrouble(tt.err); got != tt.want {
			t.Errorf("%v: %t", tt.err, got)
		}
	}
}
