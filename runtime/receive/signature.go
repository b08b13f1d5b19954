package receive

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// signed reports whether a request shows that its sender knows the secret. How long it
// takes tells nothing of the secret.
func signed(b *builtins.ReceiveBinding, h http.Header, body, secret []byte) bool {
	switch b.Signature {
	case builtins.SignatureGitHub:
		text, found := strings.CutPrefix(one(h, "X-Hub-Signature-256"), "sha256=")
		return found && sameSum(hexSum(text), body, secret)
	case builtins.SignatureHMAC:
		text := strings.TrimPrefix(one(h, b.Header), "sha256=")
		sum := hexSum(text)
		if sum == nil {
			sum, _ = base64.StdEncoding.DecodeString(text)
		}
		return sameSum(sum, body, secret)
	case builtins.SignatureGitLab:
		return sameText(one(h, "X-Gitlab-Token"), secret)
	case builtins.SignatureBearer:
		scheme, token, _ := strings.Cut(one(h, "Authorization"), " ")
		return strings.EqualFold(scheme, "Bearer") && sameText(token, secret)
	}
	return false
}

// one returns a header that must be there once.
func one(h http.Header, name string) string {
	if values := h.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

func hexSum(text string) []byte {
	if len(text) != hex.EncodedLen(sha256.Size) {
		return nil
	}
	sum, err := hex.DecodeString(text)
	if err != nil {
		return nil
	}
	return sum
}

func sameSum(sum, body, secret []byte) bool {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return hmac.Equal(sum, mac.Sum(nil))
}

// sameText compares sums, so that not even the length shows.
func sameText(text string, secret []byte) bool {
	a, b := sha256.Sum256([]byte(text)), sha256.Sum256(secret)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

const (
	// secretFor is how long a Secret is not read again, and secretAtLeast how long not
	// even for a signature that does not fit, or after an error.
	secretFor     = 30 * time.Second
	secretAtLeast = 2 * time.Second
	// secretWithin bounds reading it.
	secretWithin = 5 * time.Second
)

// secret keeps one key of a Secret for a short time.
type secret struct {
	reader builtins.Reader
	ref    effect.Ref
	key    string

	mu    sync.Mutex
	value []byte
	err   error
	read  time.Time
}

// get returns the value, read again when it is older than most.
func (s *secret) get(ctx context.Context, most time.Duration) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		most = secretAtLeast
	}
	if !s.read.IsZero() && time.Since(s.read) <= most {
		return s.value, s.err
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), secretWithin)
	defer cancel()
	s.value, s.err = s.fetch(within)
	s.read = time.Now()
	return s.value, s.err
}

func (s *secret) fetch(ctx context.Context) ([]byte, error) {
	obj, err := s.reader.Get(ctx, s.ref)
	if err != nil {
		return nil, err
	}
	if obj == nil {
		return nil, fmt.Errorf("%s is not there", s.ref)
	}
	data, _ := obj["data"].(map[string]any)
	text, found := data[s.key].(string)
	if !found {
		return nil, fmt.Errorf("%s has no key %q", s.ref, s.key)
	}
	value, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: key %q is no base64", s.ref, s.key)
	}
	if len(value) == 0 {
		return nil, errors.New(s.ref.String() + ": key " + s.key + " is empty; anybody could sign with that")
	}
	return value, nil
}
