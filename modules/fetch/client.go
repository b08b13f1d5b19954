package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
)

const (
	// maxIndex bounds the index of a chart repository for people who wait for it; the largest public
	// ones have 20 MiB.
	maxIndex = 32 << 20
	// maxIndexValues bounds the values of any index: each takes some hundred bytes of memory, however short it is.
	maxIndexValues = 3_000_000
	// maxIndexBeside bounds it for a process that runs: an index takes twenty times as much memory.
	maxIndexBeside = 4 << 20
	// maxTalk is what a registry may send beside the archive of a chart.
	maxTalk = 1 << 20
	// maxRedirects is how often a server may name another URL.
	maxRedirects = 10
)

// place is a URL as messages name it: without a login, and without a query, which may be one.
func place(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the repository"
	}
	u.RawQuery = ""
	return u.Redacted()
}

// secretParts are the parts of URLs that may be logins.
var secretParts = regexp.MustCompile(`(://)[^/@\s"]+@|\?[^\s"]+`)

// scrub takes logins out of the text of an error: a server may have sent us to a URL that holds one. It
// says what to do about a server without TLS.
func scrub(err error) error {
	text := secretParts.ReplaceAllString(err.Error(), "$1")
	if noTLS := (tls.RecordHeaderError{}); errors.As(err, &noTLS) || errors.Is(err, http.ErrSchemeMismatch) {
		text += "; the server has no TLS: a registry needs it, a chart repository without it is http://"
	}
	return scrubbed{text, err}
}

// scrubbed is an error with another text.
type scrubbed struct {
	text  string
	cause error
}

func (s scrubbed) Error() string { return s.text }
func (s scrubbed) Unwrap() error { return s.cause }

// download gets a file of at most so many bytes, with the login that there is for its host. packed: it
// is wanted as the server keeps it; Go would unpack what is sent as Content-Encoding: gzip, as some
// servers send archives.
func (f *fetcher) download(ctx context.Context, from string, limit int64, packed bool) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, fmt.Errorf("%s is no URL", place(from))
	}
	if packed {
		req.Header.Set("Accept-Encoding", "identity")
	}
	var unread error
	if req.URL.Scheme == "https" && req.URL.User == nil { // by http:// anybody could read it
		var known auth.Credential
		if known, unread = login(ctx, req.URL.Host); known.Username != "" {
			req.SetBasicAuth(known.Username, known.Password)
		}
	}
	resp, err := f.client(ctx, limit, 0).Do(req)
	if err != nil {
		return nil, scrub(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
	case unread != nil:
		return nil, fmt.Errorf("%s answers %s; logins cannot be read: %w", place(from), resp.Status, unread)
	default:
		return nil, fmt.Errorf("%s answers %s", place(from), resp.Status)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place(from), err)
	}
	return data, nil
}

// login is that of `helm registry login` or of Docker's config, which are read each time; the empty
// one when they have none.
func login(ctx context.Context, host string) (auth.Credential, error) {
	helm, err := credentials.NewStore(helm.Logins(), credentials.StoreOptions{})
	if err != nil {
		return auth.EmptyCredential, err
	}
	docker, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
	if err != nil {
		return auth.EmptyCredential, err
	}
	return credentials.Credential(credentials.NewStoreWithFallbacks(helm, docker))(ctx, host)
}

func ociRef(d *helm.Dependency) string { return strings.TrimSuffix(d.Repository, "/") + "/" + d.Name }

func isOCI(url string) bool { return strings.HasPrefix(url, "oci://") }

// registry carries requests to a registry.
func (f *fetcher) registry(ctx context.Context) *http.Client {
	return f.client(ctx, tree.MaxFileBytes, maxTalk)
}

// client carries requests that end with ctx. All their answers together have at most limit bytes,
// and so many besides.
func (f *fetcher) client(ctx context.Context, limit, besides int64) *http.Client {
	retries := retry.NewTransport(cmp.Or(f.o.Transport, http.DefaultTransport))
	left := &atomic.Int64{}
	left.Store(limit + besides)
	return &http.Client{Transport: limited{ctx, retries, limit, left}, CheckRedirect: checkRedirect}
}

// checkRedirect refuses to go on without TLS, where anybody could answer. A login is for its host and
// port alone; Go would send it to all ports.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if req.URL.Host != via[0].URL.Host {
		req.Header.Del("Authorization")
	}
	switch {
	case via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("it sends us on without TLS")
	case len(via) >= maxRedirects:
		return fmt.Errorf("it sends us on more than %d times", maxRedirects)
	}
	return nil
}
