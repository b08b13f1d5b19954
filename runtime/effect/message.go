package effect

import (
	"errors"
	"net/url"
	"time"
)

// Request is one HTTP request. All of it may be secret, all but Hosts: nothing of
// it goes into logs or errors but what [Request.Where] tells.
type Request struct {
	// Method is in capital letters.
	Method string `json:"method"`
	// URL is absolute, http or https.
	URL string `json:"url"`
	// Hidden means that of the URL only the host may be shown.
	Hidden bool `json:"hidden,omitempty"`
	// Headers by their canonical names.
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body,omitempty"`
	// CA holds certificates in PEM that are trusted instead of the system's; "" means the system's.
	CA string `json:"ca,omitempty"`
	// Cert is a client certificate in PEM, with those between it and its authority, and
	// CertKey its private key; "" both: none.
	Cert    string `json:"cert,omitempty"`
	CertKey string `json:"certKey,omitempty"`
	// ServerName is the name for which the server's certificate must be; "" means the host of the URL.
	ServerName string `json:"serverName,omitempty"`
	// Insecure takes any certificate of the server.
	Insecure bool `json:"insecure,omitempty"`
	// MaxBytes bounds the body of the answer; 0 means 8 MiB.
	MaxBytes int `json:"maxBytes,omitempty"`
	// Reads says that the request changes nothing, whatever its method: a plan makes it, too.
	Reads bool `json:"reads,omitempty"`
	// Timeout bounds the request, its answer and all redirects together.
	Timeout time.Duration `json:"timeout"`
	// Hosts are where the request, and redirects, may lead.
	Hosts Hosts `json:"hosts"`
}

// Message is a request that is sent once the run is committed, and again until it has been taken.
type Message struct {
	Request
	// Key is "" or what a later message of the hook with the same key replaces this one by, while it waits.
	Key string `json:"key,omitempty"`
	// Pos is the "file:line" of the call.
	Pos string `json:"pos,omitempty"`
}

// Special reports whether TLS is set up for one server: another one must not get the request.
func (r *Request) Special() bool { return r.Cert != "" || r.ServerName != "" || r.Insecure }

// Size is how many bytes the request takes.
func (r *Request) Size() int {
	n := len(r.URL) + len(r.Body) + len(r.CA) + len(r.Cert) + len(r.CertKey)
	for k, v := range r.Headers {
		n += len(k) + len(v)
	}
	return n
}

// Host is the host of the URL, with its port if it names one.
func (r *Request) Host() (string, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return "", errors.New("the URL is broken")
	}
	return u.Host, nil
}

// Where tells people where the request goes, without what may be secret: the query,
// and of a hidden URL all but its host.
func (r *Request) Where() string {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return r.Method + " a broken URL"
	case r.Hidden:
		return r.Method + " " + u.Scheme + "://" + u.Host + "/***"
	}
	return r.Method + " " + u.Scheme + "://" + u.Host + u.EscapedPath()
}
