package builtins

import (
	"errors"
	"fmt"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/pki"
)

// Requests, made of the arguments of a call.

// askedMethods are those of http.request.
var askedMethods = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// asked reads all arguments of http.request.
func (c *call) asked() (effect.Request, error) {
	method := c.Str("method")
	if !slices.Contains(askedMethods[:], method) {
		return effect.Request{}, fmt.Errorf("method: %q is none; use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS", spec.Clip(method))
	}
	r, err := c.askedWith(method)
	if err == nil {
		r.Reads = c.BoolOr("reads", false)
		err = c.httpBody(&r, maxHTTPBody)
	}
	return r, err
}

// askedWith reads those of a request that is made in the run, but for its body.
func (c *call) askedWith(method string) (effect.Request, error) {
	r, err := c.httpRequest(method)
	if err != nil {
		return r, err
	}
	r.MaxBytes = c.IntOr("max_bytes", 0)
	return r, c.clientTLS(&r, "key")
}

// clientTLS reads server_name, insecure and cert, whose key is the argument of that name.
func (c *call) clientTLS(r *effect.Request, key string) error {
	r.ServerName, r.Insecure = c.Str("server_name"), c.BoolOr("insecure", false)
	switch {
	case r.Insecure && r.CA != "":
		return errors.New("insecure and ca exclude each other")
	case r.Insecure && r.ServerName != "":
		return errors.New("insecure and server_name exclude each other")
	case c.Arg("server_name") != nil && !isServerName(r.ServerName):
		return fmt.Errorf(`server_name: %q is no name of a server, as "api.example.com"`, spec.Clip(r.ServerName))
	}
	if err := c.clientCert(r, key); err != nil {
		return err
	}
	if r.Special() && !strings.HasPrefix(r.URL, "https:") {
		return errors.New("server_name and insecure are for https URLs")
	}
	return nil
}

// clientCert reads cert, and its key from the argument of that name. Errors show nothing of a key.
func (c *call) clientCert(r *effect.Request, of string) error {
	r.Cert, r.CertKey = c.Text("cert"), c.Text(of)
	switch {
	case (c.Arg("cert") == nil) != (c.Arg(of) == nil):
		return fmt.Errorf("cert and %s belong together; give both", of)
	case c.Arg("cert") == nil:
		return nil
	case !strings.HasPrefix(r.URL, "https:"):
		return fmt.Errorf("cert and %s are for https URLs", of)
	}
	certs, err := pki.ParseCertificates(r.Cert)
	if err != nil {
		return fmt.Errorf("cert: %w", err)
	}
	key, err := pki.ParseKey(r.CertKey)
	if err != nil {
		return fmt.Errorf("%s: %w", of, err)
	}
	if !pki.Belongs(key, certs[0]) {
		return fmt.Errorf("%s: it is not that of the first certificate of cert", of)
	}
	return nil
}

func isServerName(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || len(validation.IsDNS1123Subdomain(strings.ToLower(name))) == 0
}

// httpBody reads json and body, and says in a header what it is unless the hook does.
func (c *call) httpBody(r *effect.Request, most int) error {
	contentType := ""
	switch v := c.Arg("json"); {
	case v != nil && v != starlark.None && c.Arg("body") != nil:
		return errors.New("json and body exclude each other")
	case v != nil && v != starlark.None:
		plain, err := object.ToPlainAt(v, []string{"json"})
		if err != nil {
			return err
		}
		text, err := spec.EncodeJSON(plain)
		if err != nil {
			return err
		}
		r.Body, contentType = []byte(text), "application/json"
	case c.Arg("body") != nil:
		r.Body, contentType = []byte(c.Text("body")), "text/plain; charset=utf-8"
		if _, raw := c.Arg("body").(starlark.Bytes); raw {
			contentType = "application/octet-stream"
		}
	}
	if len(r.Body) > most {
		return fmt.Errorf("the body is larger than %d MiB", most>>20)
	}
	if contentType != "" && r.Headers["Content-Type"] == "" {
		if r.Headers == nil {
			r.Headers = map[string]string{}
		}
		r.Headers["Content-Type"] = contentType
	}
	return nil
}

// httpRequest reads url, headers, timeout and ca, and makes sure that the host is listed.
func (c *call) httpRequest(method string) (effect.Request, error) {
	r := effect.Request{Method: method, Timeout: c.DurationOr("timeout", defaultHTTPTimeout)}
	_, r.Hidden = c.Arg("url").(*object.Secret)
	var err error
	if r.Hosts, err = c.hosts(); err != nil {
		return r, err
	}
	if r.URL, err = listedURL(c.Text("url"), r.Hidden, r.Hosts); err != nil {
		return r, fmt.Errorf("url: %w", err)
	}
	if r.Headers, err = httpHeaders(c.Arg("headers")); err != nil {
		return r, fmt.Errorf("headers: %w", err)
	}
	for name := range r.Headers {
		if slices.Contains(ownHeaders[:], name) || strings.HasPrefix(name, "Proxy-") {
			return r, fmt.Errorf("headers: %s is set by Starling; leave it out", name)
		}
	}
	if c.Arg("ca") != nil {
		r.CA = c.Text("ca")
		if _, err := pki.ParseCertificates(r.CA); err != nil {
			return r, fmt.Errorf("ca: %w", err)
		}
	}
	return r, nil
}

// listedURL returns the URL as it is sent. Errors show nothing of a hidden one: a host
// that no list of people has may be part of the secret.
func listedURL(text string, hidden bool, hosts effect.Hosts) (string, error) {
	shown := "it"
	if !hidden {
		shown = strconv.Quote(spec.Clip(text))
	}
	if len(text) > maxURL {
		return "", fmt.Errorf("is longer than %d KiB", maxURL>>10)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return "", fmt.Errorf(`%s is no http or https URL with a host, as "https://api.example.com/path"`, shown)
	}
	if u.User != nil {
		return "", errors.New("a user or password does not belong into it; use headers")
	}
	u.Fragment, u.RawFragment = "", ""
	port := uint64(80)
	if u.Scheme == "https" {
		port = 443
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.ParseUint(p, 10, 16); err != nil || port == 0 {
			return "", fmt.Errorf("%s has a port that is none", shown)
		}
	}
	if !hosts.Allow(u.Hostname(), uint16(port)) {
		if hidden {
			return "", errors.New("its host is not listed, and is not shown, as the URL is a secret; add the host to module(http = […]) in module.star")
		}
		return "", fmt.Errorf("the host %s is not listed; add %q to module(http = […]) in module.star", spec.Clip(u.Host), spec.Clip(u.Host))
	}
	return u.String(), nil
}

// ownHeaders are those that follow from the request, and would be wrong if set.
var ownHeaders = [...]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Keep-Alive", "Expect", "Accept-Encoding"}

// httpHeaders reads headers=, each a text: several lines of one name are a text with commas. Errors name headers, and
// never show what they hold.
func httpHeaders(v starlark.Value) (map[string]string, error) {
	m, ok := v.(starlark.IterableMapping)
	if !ok {
		return nil, nil
	}
	out, size := map[string]string{}, 0
	for k, e := range starlark.Entries(m) {
		name, ok := starlark.AsString(k)
		if !ok || !isHeaderName(name) {
			return nil, fmt.Errorf("%s is no name of a header", spec.Clip(k.String()))
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		value, ok := spec.OpenText(e)
		if !ok {
			return nil, fmt.Errorf("%s: got %s, want %s", name, e.Type(), spec.SecretText)
		}
		_, twice := out[name]
		switch {
		case twice:
			return nil, fmt.Errorf("%s is given twice", name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, fmt.Errorf("%s: a header holds no line ends or other control characters", name)
		}
		out[name] = value
		if size += len(name) + len(value); size > maxHeaders {
			return nil, fmt.Errorf("are larger than %d KiB together", maxHeaders>>10)
		}
	}
	return out, nil
}

func isHeaderName(name string) bool {
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("-_!#$%&'*+.^`|~", r)
	})
}
