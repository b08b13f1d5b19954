package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/starling-operator/starling/runtime/message"
)

// LoadConfig finds the API server the way kubectl does: the file kubeconfig when
// it is not "", else the files of $KUBECONFIG, else ~/.kube/config, else the
// ServiceAccount of the pod we run in. contextName picks a context of the file,
// "" its current one. source says in words what was used. It does no network I/O;
// see [CheckReachable].
func LoadConfig(kubeconfig, contextName string) (cfg *rest.Config, source string, err error) {
	files, source, err := kubeconfigFiles(kubeconfig)
	if err != nil {
		return nil, "", err
	}
	if len(files) == 0 {
		return inCluster(contextName)
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: files}
	raw, err := rules.Load()
	if err != nil {
		return nil, "", fmt.Errorf("%s cannot be read as a kubeconfig: %s", source, message.Line(err.Error()))
	}
	name := cmp.Or(contextName, raw.CurrentContext)
	if raw.Contexts[name] == nil {
		return nil, "", missingContext(raw, source, contextName)
	}
	cfg, err = clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("%s, context %q: %s", source, name, message.Line(err.Error()))
	}
	return cfg, fmt.Sprintf("%s, context %q", source, name), nil
}

// kubeconfigFiles returns the files to merge, and none when there are none.
func kubeconfigFiles(flag string) (files []string, source string, err error) {
	if flag != "" {
		source = "kubeconfig " + flag
		if err := readable(flag); err != nil {
			return nil, "", fmt.Errorf("%s given by --kubeconfig %w", source, err)
		}
		return []string{flag}, source, nil
	}
	if env := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); env != "" {
		var last error
		for _, file := range filepath.SplitList(env) {
			if file == "" {
				continue
			}
			// As in kubectl, a list may name files that are not there; one of
			// them has to be.
			if err := readable(file); err != nil {
				if !errors.Is(err, fs.ErrNotExist) || last == nil {
					last = fmt.Errorf("kubeconfig %s given by $KUBECONFIG %w", file, err)
				}
				continue
			}
			files = append(files, file)
		}
		if len(files) == 0 && last != nil {
			return nil, "", last
		}
		if len(files) > 0 {
			return files, "kubeconfig " + strings.Join(files, string(filepath.ListSeparator)), nil
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		file := filepath.Join(home, ".kube", "config")
		switch err := readable(file); {
		case err == nil:
			return []string{file}, "kubeconfig " + file, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, "", fmt.Errorf("kubeconfig %s %w", file, err)
		}
	}
	return nil, "", nil
}

// readable says why a file cannot be used, in words that follow its name.
func readable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &fileError{"does not exist", err}
	case err != nil:
		return &fileError{"cannot be read: " + reason(err), err}
	case info.IsDir():
		return &fileError{"is a folder, not a file", nil}
	}
	f, err := os.Open(file)
	if err != nil {
		return &fileError{"cannot be read: " + reason(err), err}
	}
	return f.Close()
}

type fileError struct {
	msg string
	err error
}

func (e *fileError) Error() string { return e.msg }
func (e *fileError) Unwrap() error { return e.err }

func reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}

func missingContext(raw *clientcmdapi.Config, source, name string) error {
	names := slices.Sorted(maps.Keys(raw.Contexts))
	has := "it has none"
	if len(names) > 0 {
		has = "it has " + strings.Join(names, ", ")
	}
	if name == "" {
		return fmt.Errorf("%s sets no current context that exists: choose one with --context (%s)", source, has)
	}
	return fmt.Errorf("%s has no context %q (%s)", source, name, has)
}

func inCluster(contextName string) (*rest.Config, string, error) {
	cfg, err := rest.InClusterConfig()
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, "", fmt.Errorf("no Kubernetes cluster is configured: give --kubeconfig FILE or set $KUBECONFIG (there is no ~/.kube/config, and this is no pod)")
	case err != nil:
		return nil, "", fmt.Errorf("the pod's ServiceAccount cannot be used: %s", message.Line(err.Error()))
	case contextName != "":
		return nil, "", fmt.Errorf("--context %q needs a kubeconfig, and the pod's ServiceAccount is all there is: give --kubeconfig FILE", contextName)
	}
	return cfg, "the pod's ServiceAccount", nil
}

// CheckReachable asks the API server for its version once. The error is one line
// that names the server and why it cannot be used.
func CheckReachable(ctx context.Context, cfg *rest.Config) error {
	c, err := New(Options{Config: cfg})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.do(ctx, c.rest.Get().AbsPath("/version").MaxRetries(0)); err == nil {
		return nil
	}
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		if apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the API server at %s does not accept our credentials: renew the token or certificate in the kubeconfig", cfg.Host)
		}
		msg := fmt.Sprintf("the API server at %s answers %d to a question for its version: %s", cfg.Host, api.Status().Code, safeMessage(api.Status(), action{}))
		return &Error{msg: msg, err: err}
	}
	text := transportError(err, cfg.Host)
	if !strings.Contains(text, cfg.Host) {
		text = "cannot reach the API server at " + cfg.Host + ": " + text
	}
	return &Error{msg: text, err: err}
}

// InTrouble says of an error that it may be another one in a moment: the API server is overloaded, or fails, or nobody
// answers at its address. A name that is not known, and a certificate that is not trusted, are no such errors.
func InTrouble(err error) bool {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		code := api.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return !dns.IsNotFound
	}
	var network net.Error
	for _, away := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH, io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	return errors.As(err, &network) && network.Timeout()
}
