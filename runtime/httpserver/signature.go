package httpserver

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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// maxSkew is how far the time that is signed with a request may be off.
const maxSkew = 5 * time.Minute

// proof is what the headers of a request say to show that its sender knows the secret.
type proof struct {
	// token is the secret itself; else sums are HMACs of before and the body, of which
	// one must fit.
	token  string
	sums   [][]byte
	before string
	// at is the time that is signed; zero: none is.
	at time.Time
	// handed: another process has had the token, and gives a sum in its place.
	handed bool
}

// proofOf reads the headers. It is false when they cannot fit whatever the secret and the
// body are: then the body need not be read.
func proofOf(b *builtins.ReceiveBinding, r *http.Request, now time.Time) (p proof, ok bool) {
	at, h := "", r.Header
	to, sum := h.Get(forwardedHeader), one(h, tokenHeader)
	p.handed = to != "" && sum != "" && (b.Signature == builtins.SignatureGitLab || b.Signature == builtins.SignatureBearer)
	if p.handed {
		given, err := base64.StdEncoding.DecodeString(sum)
		p.sums, p.before = [][]byte{given}, handedOn(to, r)
		return p, err == nil
	}
	switch b.Signature {
	case builtins.SignatureGitLab:
		p.token = one(h, "X-Gitlab-Token")
		return p, p.token != ""
	case builtins.SignatureBearer:
		scheme, token, _ := strings.Cut(one(h, "Authorization"), " ")
		p.token = token
		return p, strings.EqualFold(scheme, "Bearer") && token != ""
	case builtins.SignatureGitHub:
		if text, found := strings.CutPrefix(one(h, "X-Hub-Signature-256"), "sha256="); found {
			p.sums = append(p.sums, hexSum(text))
		}
	case builtins.SignatureHMAC:
		text := strings.TrimPrefix(one(h, b.Header), "sha256=")
		sum := hexSum(text)
		if sum == nil {
			sum, _ = base64.StdEncoding.DecodeString(text)
		}
		p.sums = append(p.sums, sum)
		if b.Timestamp != "" {
			at = one(h, b.Timestamp)
			p.before = at + "."
		}
	case builtins.SignatureSlack:
		if text, found := strings.CutPrefix(one(h, "X-Slack-Signature"), "v0="); found {
			p.sums = append(p.sums, hexSum(text))
		}
		at = one(h, "X-Slack-Request-Timestamp")
		p.before = "v0:" + at + ":"
	case builtins.SignatureStripe:
		parts := strings.Split(one(h, "Stripe-Signature"), ",")
		for _, part := range parts[:min(len(parts), 20)] { // one for each secret that is in use
			switch name, text, _ := strings.Cut(strings.TrimSpace(part), "="); name {
			case "t":
				at = text
			case "v1":
				p.sums = append(p.sums, hexSum(text))
			}
		}
		p.before = at + "."
	}
	p.sums = slices.DeleteFunc(p.sums, func(sum []byte) bool { return len(sum) != sha256.Size })
	if p.before != "" {
		seconds, err := strconv.ParseInt(at, 10, 64)
		p.at = time.Unix(seconds, 0)
		if err != nil || p.at.Before(now.Add(-maxSkew)) || p.at.After(now.Add(maxSkew)) {
			return p, false
		}
	}
	return p, len(p.sums) > 0
}

// fits returns what of the proof fits the secret and the body, nil when nothing does. How
// long it takes tells nothing of the secret.
func (p proof) fits(body, secret []byte) []byte {
	if p.token != "" {
		if sameText(p.token, secret) {
			return []byte{}
		}
		return nil
	}
	for _, sum := range p.sums {
		if hmac.Equal(sum, p.sum(body, secret)) {
			return sum
		}
	}
	return nil
}

func (p proof) sum(body, secret []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(p.before))
	mac.Write(body)
	return mac.Sum(nil)
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
