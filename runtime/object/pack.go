package object

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"
)

// Packed is plain JSON data in little memory: a tenth of what its maps take. Equal data is packed to equal
// texts.
type Packed string

// The first byte of a value. A text that is one of words is its index, one that was there before is how many
// came before it, and the frame of names in managedFields is left out.
const (
	packedNil byte = iota
	packedFalse
	packedTrue
	packedInt
	packedFloat
	packedText
	packedWord
	packedField // "f:" and a text
	packedOwner // `k:{"uid":"…"}`
	packedAgain
	packedHex  // a text of pairs of lower-case hex digits
	packedUID  // the value of "uid"
	packedTime // the value of "time"
	packedMap
	packedList
)

// words are texts that most objects have. Their order is not kept anywhere.
var words = strings.Fields(`
	apiVersion kind metadata spec status data stringData type name namespace uid generation labels annotations
	ownerReferences managedFields deletionTimestamp manager operation subresource time fieldsV1 Apply Update controller
	blockOwnerDeletion finalizers . starling.dev/controller starling.dev/parent starling.dev/parent-uid starling.dev/child
	starling.dev/desired starling.dev/order starling.dev/retain starling.dev/instance
	app app.kubernetes.io/name app.kubernetes.io/instance v1 apps/v1 batch/v1 networking.k8s.io/v1 rbac.authorization.k8s.io/v1
	ConfigMap Secret Service ServiceAccount Deployment StatefulSet DaemonSet Job Ingress PersistentVolumeClaim Pod
	Role RoleBinding NetworkPolicy Namespace
	replicas selector matchLabels template containers image ports containerPort port targetPort protocol TCP env value
	valueFrom resources limits requests cpu memory volumeMounts mountPath volumes configMap secretName args command
	serviceAccountName securityContext livenessProbe readinessProbe httpGet path pathType Prefix rules host http paths
	backend service number clusterIP None tls roleRef subjects apiGroup verbs apiGroups strategy updateStrategy
	rollingUpdate accessModes storage conditions reason message True False Unknown Available Progressing observedGeneration
	updatedReplicas readyReplicas availableReplicas loadBalancer phase restartPolicy Always imagePullPolicy IfNotPresent
	sessionAffinity internalTrafficPolicy Cluster externalTrafficPolicy ipFamilyPolicy SingleStack progressDeadlineSeconds
	revisionHistoryLimit paused suspend completions parallelism backoffLimit minReadySeconds podManagementPolicy serviceName
	kubectl kubelet kube-controller-manager true false`)

var wordAt = func() map[string]int {
	at := make(map[string]int, len(words))
	for i, w := range words {
		at[w] = i
	}
	return at
}()

// Pack packs an object of plain JSON data. Anything else in it counts as null.
func Pack(obj map[string]any) Packed {
	p := packer{out: make([]byte, 0, 1024)}
	p.value(obj)
	return Packed(p.out)
}

// Unpack returns the object again. It shares nothing but texts with other answers.
func (p Packed) Unpack() map[string]any {
	u := unpacker{left: string(p)}
	obj, _ := u.value().(map[string]any)
	return obj
}

// Text returns a text equal to s, in the memory of p where it is there as it is.
func (p Packed) Text(s string) string {
	if i := strings.Index(string(p), s); i >= 0 {
		return string(p[i : i+len(s)])
	}
	return s
}

// seen are texts that may come again: a uid, a name.
type seen struct {
	texts [32]string
	n     int
}

// note takes in a text. One that is short is as long as what would stand for it.
func (s *seen) note(text string) {
	if len(text) >= 4 && s.n < len(s.texts) {
		s.texts[s.n] = text
		s.n++
	}
}

type packer struct {
	out  []byte
	seen seen
}

func (p *packer) add(tag byte, n int) { p.out = binary.AppendUvarint(append(p.out, tag), uint64(n)) }

func (p *packer) value(v any) {
	switch v := v.(type) {
	case bool:
		if v {
			p.out = append(p.out, packedTrue)
		} else {
			p.out = append(p.out, packedFalse)
		}
	case int64:
		p.out = binary.AppendVarint(append(p.out, packedInt), v)
	case float64:
		p.out = binary.BigEndian.AppendUint64(append(p.out, packedFloat), math.Float64bits(v))
	case string:
		p.text(v)
	case map[string]any:
		p.add(packedMap, len(v))
		var room [16]string
		for _, key := range appendKeys(room[:0], v) {
			p.text(key)
			p.field(key, v[key])
		}
	case []any:
		p.add(packedList, len(v))
		for _, e := range v {
			p.value(e)
		}
	default:
		p.out = append(p.out, packedNil)
	}
}

// field is the value of a field. Other texts that look like a uid stay as they are: see [Packed.Text].
func (p *packer) field(key string, v any) {
	text, is := v.(string)
	if !is || key != "uid" && key != "time" || slices.Contains(p.seen.texts[:p.seen.n], text) {
		p.value(v)
		return
	}
	if id, is := uidBytes(text); is && key == "uid" {
		p.seen.note(text)
		p.out = append(append(p.out, packedUID), id...)
		return
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && timeText(at.Unix()) == text {
		p.seen.note(text)
		p.out = binary.AppendVarint(append(p.out, packedTime), at.Unix())
		return
	}
	p.value(v)
}

// uidBytes are those that a uid is the text of, if it is one.
func uidBytes(text string) ([]byte, bool) {
	if len(text) != 36 {
		return nil, false
	}
	id, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	return id, err == nil && len(id) == 16 && uidText(id) == text
}

func uidText(id []byte) string {
	out := make([]byte, 0, 36)
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = hex.AppendEncode(out, []byte{b})
	}
	return string(out)
}

func timeText(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// leastHex is the length of texts that are worth a look whether they are hex.
const leastHex = 16

// hexBytes are those that a text is the lower-case hex of, if it is that.
func hexBytes(text string) ([]byte, bool) {
	if len(text) < leastHex || strings.ContainsFunc(text, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') }) {
		return nil, false
	}
	out, err := hex.DecodeString(text)
	return out, err == nil
}

const ownerBefore, ownerAfter = `k:{"uid":"`, `"}`

func (p *packer) text(s string) {
	if i, is := wordAt[s]; is {
		p.add(packedWord, i)
		return
	}
	if field, is := strings.CutPrefix(s, "f:"); is {
		p.out = append(p.out, packedField)
		p.text(field)
		return
	}
	if uid, is := strings.CutPrefix(s, ownerBefore); is && strings.HasSuffix(uid, ownerAfter) {
		p.out = append(p.out, packedOwner)
		p.text(strings.TrimSuffix(uid, ownerAfter))
		return
	}
	if i := slices.Index(p.seen.texts[:p.seen.n], s); i >= 0 {
		p.add(packedAgain, i)
		return
	}
	p.seen.note(s)
	if digest, is := hexBytes(s); is {
		p.add(packedHex, len(digest))
		p.out = append(p.out, digest...)
		return
	}
	p.add(packedText, len(s))
	p.out = append(p.out, s...)
}

// fields are the words after "f:".
var fields = func() []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "f:" + w
	}
	return out
}()

// unpacker holds what is left to be read of what [Pack] has written.
type unpacker struct {
	left string
	seen seen
}

func (u *unpacker) byte() byte {
	b := u.left[0]
	u.left = u.left[1:]
	return b
}

func (u *unpacker) number() int {
	n := uint64(0)
	for shift := 0; ; shift += 7 {
		b := u.byte()
		if n |= uint64(b&0x7f) << shift; b < 0x80 {
			return int(n)
		}
	}
}

// signed is a number as binary.Varint has it.
func (u *unpacker) signed() int64 {
	n := uint64(u.number())
	return int64(n>>1) ^ -int64(n&1)
}

func (u *unpacker) take(n int) string {
	s := u.left[:n]
	u.left = u.left[n:]
	return s
}

func (u *unpacker) value() any {
	switch tag := u.byte(); tag {
	case packedFalse, packedTrue:
		return tag == packedTrue
	case packedInt:
		return u.signed()
	case packedFloat:
		return math.Float64frombits(binary.BigEndian.Uint64([]byte(u.take(8))))
	case packedText, packedWord, packedField, packedOwner, packedAgain, packedHex, packedUID, packedTime:
		return u.text(tag)
	case packedMap:
		n := u.number()
		m := make(map[string]any, n)
		for range n {
			key := u.text(u.byte())
			m[key] = u.value()
		}
		return m
	case packedList:
		list := make([]any, u.number())
		for i := range list {
			list[i] = u.value()
		}
		return list
	}
	return nil
}

func (u *unpacker) text(tag byte) string {
	switch tag {
	case packedWord:
		return words[u.number()]
	case packedField:
		if tag = u.byte(); tag == packedWord {
			return fields[u.number()]
		}
		return "f:" + u.text(tag)
	case packedOwner:
		return ownerBefore + u.text(u.byte()) + ownerAfter
	case packedAgain:
		return u.seen.texts[u.number()]
	}
	s := u.first(tag)
	u.seen.note(s)
	return s
}

// first is a text that was not there before.
func (u *unpacker) first(tag byte) string {
	switch tag {
	case packedHex:
		return hex.EncodeToString([]byte(u.take(u.number())))
	case packedUID:
		return uidText([]byte(u.take(16)))
	case packedTime:
		return timeText(u.signed())
	}
	return u.take(u.number())
}
