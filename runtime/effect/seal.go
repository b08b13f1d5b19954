package effect

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A mark on an object is a label or an annotation, which anybody may write who may patch the object, under
// Starling's field manager as well. So each mark that gives a right over an object carries a signature.
const (
	// ChildSignature signs that an object is the child of a parent, MadeBySignature signs [MadeByAnnotation].
	ChildSignature  = "starling.dev/child-signature"
	MadeBySignature = "starling.dev/made-by-signature"
	// SetSignature signs that an object is a member of a set of objects.
	SetSignature = "starling.dev/set-signature"
)

// Signatures are the annotations that hold signatures. They differ from one write to another, by a time or a uid.
var Signatures = []string{ChildSignature, MadeBySignature, SetSignature}

// Seal signs marks with the key of an instance. A nil Seal signs nothing and believes every mark: it is for
// those who write nothing to the cluster that they read. It is safe for concurrent use.
type Seal struct {
	now func() time.Time
	key atomic.Pointer[sealKey]

	mu sync.Mutex
	// made are the uids of objects that were made lately, by their signatures, and earlier those of before.
	made, earlier map[string]string
	since         time.Time // when the first one of made came
}

type sealKey struct {
	secret   []byte
	unsigned time.Time // marks without a signature count until then; zero: they never do
	none     bool      // the instance has no key yet
}

// NewSeal makes a seal that believes no mark before it has its key.
func NewSeal(now func() time.Time) *Seal {
	s := &Seal{now: now}
	s.key.Store(&sealKey{})
	return s
}

// Use gives the seal its key. Marks that an earlier version has made, or an earlier key, count until unsigned.
func (s *Seal) Use(secret []byte, unsigned time.Time) {
	s.key.Store(&sealKey{secret: secret, unsigned: unsigned})
}

// None notes that the instance has no key yet: no process of this version has led. A key that is known stays: this
// process may have made it meanwhile.
func (s *Seal) None() {
	if was := s.key.Load(); len(was.secret) == 0 {
		s.key.CompareAndSwap(was, &sealKey{none: true})
	}
}

// Known says whether it is known which key the instance has, if any.
func (s *Seal) Known() bool { return s.Ready() || s.key.Load().none }

// Ready says whether the seal has its key.
func (s *Seal) Ready() bool { return s == nil || len(s.key.Load().secret) > 0 }

// apart is how far the clock of the API server may be from ours: an object that was made longer before or
// after its signature is another one of the same name.
const apart = 10 * time.Minute

// Sign signs a claim about an object: about the one that is there, by its uid, or about the one that is made now.
func (s *Seal) Sign(ref Ref, uid string, claim ...string) string {
	switch {
	case s == nil:
		return ""
	case uid != "":
		return "." + s.sum(ref, append([]string{"uid", uid}, claim...))
	}
	return s.SignAt(s.now(), ref, claim...)
}

// SignAt signs a claim about an object that is made at a time.
func (s *Seal) SignAt(made time.Time, ref Ref, claim ...string) string {
	at := strconv.FormatInt(made.Unix(), 36)
	return at + "." + s.sum(ref, append([]string{"at", at}, claim...))
}

// Signs says whether a signature is that of a claim about the object live. Ref names it, since items of lists do not
// say their kind.
func (s *Seal) Signs(signature string, ref Ref, live map[string]any, claim ...string) bool {
	if s == nil {
		return true
	}
	uid := At[string](live, "metadata", "uid")
	at, sum, is := strings.Cut(signature, ".")
	if at == "" {
		return is && uid != "" && s.is(sum, ref, append([]string{"uid", uid}, claim...))
	}
	seconds, err := strconv.ParseInt(at, 36, 64)
	if err != nil || !s.is(sum, ref, append([]string{"at", at}, claim...)) {
		return false
	}
	created, known := createdAt(live)
	return (!known || created.Sub(time.Unix(seconds, 0)).Abs() <= apart) && s.isMade(signature, uid)
}

// mostMade bounds the uids that are remembered, twice.
const mostMade = 20000

// Made takes in an object as it was made with signatures that say no uid: as long as these hold by a time, they hold
// for this object alone. A process that did not make it does not know.
func (s *Seal) Made(live map[string]any) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range Signatures {
		signature, _, _ := strings.Cut(At[string](live, "metadata", "annotations", key), " ")
		if signature == "" || signature[0] == '.' {
			continue
		}
		if now := s.now(); s.made == nil || now.Sub(s.since) > 2*apart || len(s.made) >= mostMade {
			s.made, s.earlier, s.since = map[string]string{}, s.made, now
		}
		s.made[signature] = At[string](live, "metadata", "uid")
	}
}

// isMade says whether an object may be the one that was made with a signature.
func (s *Seal) isMade(signature, uid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, known := s.made[signature]
	if !known {
		made, known = s.earlier[signature]
	}
	return !known || made == uid || s.now().Sub(s.since) > 2*apart // by then no copy was made in time
}

// SignName signs a claim about whatever has the name: one that a backup brings back, too.
func (s *Seal) SignName(ref Ref, claim ...string) string {
	return s.sum(ref, append([]string{"name"}, claim...))
}

// SignsName says whether a signature is that of [Seal.SignName].
func (s *Seal) SignsName(signature string, ref Ref, claim ...string) bool {
	return s == nil || s.is(signature, ref, append([]string{"name"}, claim...))
}

// Vouches says what SignsName does, and believes everybody while the instance has no key.
func (s *Seal) Vouches(signature string, ref Ref, claim ...string) bool {
	return s.SignsName(signature, ref, claim...) || s.key.Load().none
}

// TakesUnsigned says that marks without a signature count now, for they are signed at the next look.
func (s *Seal) TakesUnsigned() bool { return s != nil && s.now().Before(s.key.Load().unsigned) }

// madeUnsigned says that an object is older than the time in which marks had no signature.
func (s *Seal) madeUnsigned(live map[string]any) bool {
	created, known := createdAt(live)
	return known && created.Before(s.key.Load().unsigned)
}

func createdAt(obj map[string]any) (at time.Time, known bool) {
	at, err := time.Parse(time.RFC3339, At[string](obj, "metadata", "creationTimestamp"))
	return at, err == nil
}

func (s *Seal) is(sum string, ref Ref, claim []string) bool {
	return len(s.key.Load().secret) > 0 && subtle.ConstantTimeCompare([]byte(sum), []byte(s.sum(ref, claim))) == 1
}

func (s *Seal) sum(ref Ref, claim []string) string {
	text, _ := json.Marshal(append([]string{GroupOf(ref.APIVersion), ref.Kind, ref.Namespace, ref.Name}, claim...)) // no list runs into another
	mac := hmac.New(sha256.New, s.key.Load().secret)
	mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// MadeBy reports whether an object has a mark, with its signature. Before marks were signed they may name the
// module alone.
func (s *Seal) MadeBy(ref Ref, obj map[string]any, mark string) bool {
	annotations := texts(obj, "annotations")
	switch got := annotations[MadeByAnnotation]; {
	case got == "" || got != mark && got != mark[strings.LastIndex(mark, "/")+1:]:
		return false
	case s == nil || got == mark && s.Signs(annotations[MadeBySignature], ref, obj, "made-by", mark):
		return true
	}
	return s.madeUnsigned(obj)
}

// MarkMade puts the mark of a module into the annotations of an object that is written. Live is what is there.
func (s *Seal) MarkMade(annotations map[string]any, ref Ref, live map[string]any, mark string) {
	annotations[MadeByAnnotation] = mark
	if s == nil {
		return
	}
	has := texts(live, "annotations")[MadeBySignature]
	if live == nil || !s.Signs(has, ref, live, "made-by", mark) { // hooks that share an object write the same
		has = s.Sign(ref, At[string](live, "metadata", "uid"), "made-by", mark)
	}
	annotations[MadeBySignature] = has
}
