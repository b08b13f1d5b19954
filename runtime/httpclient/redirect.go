package httpclient

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/starling-operator/starling/runtime/effect"
)

// redirects decides which redirects are followed, and what goes along.
func redirects(r effect.Request) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		first := via[0]
		if next.Method != first.Method {
			return http.ErrUseLastResponse // what was to be sent would not arrive
		}
		if len(via) > maxRedirects {
			return led(fmt.Sprintf("more than %d redirects", maxRedirects))
		}
		if err := checkURL(next.URL, r.Hosts); err != nil {
			return led("a redirect is not followed: " + err.Error())
		}
		next.Header.Del("Referer") // it would tell the next server of this URL
		for _, hop := range slices.Concat(via[1:], []*http.Request{next}) {
			if hop.URL.Scheme == first.URL.Scheme && hop.URL.Host == first.URL.Host {
				continue
			}
			// From here on others have a say in where it goes.
			if first.URL.Scheme == "https" && hop.URL.Scheme != "https" {
				return led("a redirect from https to http is not followed")
			}
			if len(r.Body) > 0 {
				return led("a redirect to another host is not followed with a body")
			}
			if r.Special() {
				return led("a redirect to another host is not followed with cert, server_name or insecure")
			}
			for name := range r.Headers {
				next.Header.Del(name)
			}
		}
		return nil
	}
}

// led is the end of a request that the server has led astray.
func led(msg string) error { return &RefusedError{msg: msg, theirs: true} }

// checkURL looks the host of a URL up in the list.
func checkURL(u *url.URL, hosts effect.Hosts) error {
	port := uint64(80)
	switch u.Scheme {
	case "http":
	case "https":
		port = 443
	default:
		return &RefusedError{msg: "only http and https URLs are"}
	}
	if text := u.Port(); text != "" {
		var err error
		if port, err = strconv.ParseUint(text, 10, 16); err != nil {
			return &RefusedError{msg: "the port is none"}
		}
	}
	if !hosts.Allow(u.Hostname(), uint16(port)) {
		return &RefusedError{msg: fmt.Sprintf("the host %s is not listed in module(http = […])", clip(u.Host))}
	}
	return nil
}
