package admin

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestProfilesOverTheSocketAlone(t *testing.T) {
	o := options(t)
	s, _ := start(t, o)
	c := NewClient(ClientOptions{Socket: o.Socket, Timeout: 10 * time.Second})
	for _, name := range []string{"heap", "goroutine", "cpu"} {
		var out bytes.Buffer
		if err := c.Profile(t.Context(), &out, name, 0); err != nil || !bytes.HasPrefix(out.Bytes(), []byte{0x1f, 0x8b}) { // gzip
			t.Errorf("%s: %v, %d bytes", name, err, out.Len())
		}
	}
	for _, name := range []string{"hepa", "../v1/status"} {
		if err := c.Profile(t.Context(), &bytes.Buffer{}, name, 0); err == nil || !strings.Contains(err.Error(), "; there are allocs, cpu, ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, over := range []time.Duration{-time.Second, time.Hour, 1500 * time.Millisecond} {
		if err := c.Profile(t.Context(), &bytes.Buffer{}, "cpu", over); err == nil || !strings.Contains(err.Error(), "whole seconds, 5m0s at most, not for ") {
			t.Errorf("%s: %v", over, err)
		}
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap"} {
		if code, _ := get(t, s, path); code != 404 {
			t.Errorf("%s of the address for metrics: %d", path, code)
		}
	}
}

// A profile may take longer than a request may take to come in.
func TestALongProfileIsNotCutOff(t *testing.T) {
	o := options(t)
	start(t, o, func(s *Server) {
		handler := s.admin.Handler
		s.admin.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// As ReadTimeout does, but it has come in, however slow this machine is.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			handler.ServeHTTP(w, r)
		})
	})
	began := time.Now()
	var out bytes.Buffer
	if err := NewClient(ClientOptions{Socket: o.Socket}).Profile(t.Context(), &out, "cpu", time.Second); err != nil || time.Since(began) < time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

func TestLogLevelOverTheSocket(t *testing.T) {
	o := options(t)
	level := "info"
	o.LogLevel = func(to string) (string, error) {
		was := level
		switch to {
		case "":
		case "debug":
			level = to
		default:
			return "", errors.New("no such level")
		}
		return was, nil
	}
	start(t, o)
	c := NewClient(ClientOptions{Socket: o.Socket})
	for _, tt := range [][2]string{{"", "info"}, {"debug", "info"}, {"", "debug"}} {
		if was, err := c.LogLevel(t.Context(), tt[0]); was != tt[1] || err != nil {
			t.Errorf("%q: %q, %v", tt[0], was, err)
		}
	}
	if _, err := c.LogLevel(t.Context(), "loud"); err == nil || !strings.HasSuffix(err.Error(), "answered: no such level") {
		t.Errorf("got %v", err)
	}
}
