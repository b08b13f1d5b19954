package jq

import (
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/syntax"
)

// prec says how tightly the outermost operator of an expression binds, in Starlark.
type prec int

const (
	ternaryPrec prec = iota
	orPrec
	andPrec
	notPrec
	comparePrec
	addPrec
	multiplyPrec
	unaryPrec
	primaryPrec
)

// kind is what is known of a value before the filter runs.
type kind int

const (
	anyKind kind = iota
	nullKind
	boolKind
	numberKind
	textKind
	listKind
	mapKind
)

// expr is an expression of Starlark.
type expr struct {
	text string
	prec prec
	kind kind
	// root and keys are set for a place in the object: the variable, and the keys below it.
	root string
	keys []string
	// objects says that the elements of this list come from the cluster.
	objects bool
}

// at returns the text, in parentheses where its place asks for a tighter operator.
func (e expr) at(least prec) string {
	if e.prec < least {
		return "(" + e.text + ")"
	}
	return e.text
}

// fits refuses what has grown too long.
func (e expr) fits() error {
	if len(e.text) > maxLambda {
		return unsupported("a filter whose lambda would be longer than %d KiB", maxLambda>>10)
	}
	return nil
}

func constant(text string, k kind) expr { return expr{text: text, prec: primaryPrec, kind: k} }

func text(s string) expr { return constant(syntax.Quote(s, false), textKind) }

// cluster is a variable that holds an object of the cluster, or an element of one.
func cluster(variable string) expr { return expr{text: variable, prec: primaryPrec, root: variable} }

// below returns the place under a key.
func (e expr) below(key string) (expr, error) {
	if e.root == "" {
		return expr{}, unsupported("a path into a value that the filter has made, %s", key)
	}
	e.keys = append(slices.Clone(e.keys), key)
	e.text = e.root + ".get(" + e.path() + ")"
	e.kind = anyKind
	if e.root == argument && slices.Contains(textPaths(), strings.Join(e.keys, ".")) {
		e.kind = textKind
	}
	return e, nil
}

// or returns the place with another value where nothing, or null, is.
func (e expr) or(other string) string { return e.root + ".get(" + e.path() + ", " + other + ")" }

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// path writes the keys as dotted text where that is exact, else as a list.
func (e expr) path() string {
	for _, key := range e.keys {
		if !plainKey.MatchString(key) && !plainIndex.MatchString(key) {
			quoted := make([]string, len(e.keys))
			for i, key := range e.keys {
				quoted[i] = text(key).text
			}
			return "[" + strings.Join(quoted, ", ") + "]"
		}
	}
	return text(strings.Join(e.keys, ".")).text
}

// last is the name of the place in its map; "" for a variable alone.
func (e expr) last() string {
	if len(e.keys) == 0 {
		return ""
	}
	return e.keys[len(e.keys)-1]
}

// isList reports whether the place holds a list wherever it is there.
func (e expr) isList() bool { return slices.Contains(listFields(), e.last()) }

// isMap reports the same of maps.
func (e expr) isMap() bool { return slices.Contains(mapFields(), e.last()) }

// Fields of Kubernetes. jq's length, keys and .[] do one thing with lists and another with
// maps, and Starlark, too: so it must be known before. Constructors, not variables: nobody
// can change them.
func listFields() []string {
	return strings.Fields(`accessModes addresses args clusterIPs command conditions containers containerStatuses
		endpoints env envFrom ephemeralContainers externalIPs finalizers hosts imagePullSecrets images ingress
		initContainers initContainerStatuses loadBalancerSourceRanges managedFields ownerReferences paths podCIDRs
		podIPs policyTypes ports rules secrets subjects subsets taints tls tolerations topologySpreadConstraints
		volumeMounts volumes webhooks`)
}

func mapFields() []string {
	return strings.Fields(`allocatable annotations binaryData capacity data hard labels limits matchLabels metadata
		nodeSelector requests spec status stringData`)
}

// textPaths hold a text in every object. A namespace is none of them: Nodes have none.
func textPaths() []string {
	return strings.Fields(`apiVersion kind metadata.creationTimestamp metadata.name metadata.resourceVersion metadata.uid`)
}

// binary joins two expressions; an operator groups to the left.
func binary(a expr, op string, b expr, p prec, k kind) expr {
	left := p
	if p == comparePrec { // comparisons do not group
		left = p + 1
	}
	return expr{text: a.at(left) + " " + op + " " + b.at(p+1), prec: p, kind: k}
}

// choose is "a if cond else b".
func choose(cond, a, b expr) expr {
	k := anyKind
	if a.kind == b.kind {
		k = a.kind
	}
	return expr{
		text: a.at(orPrec) + " if " + cond.at(orPrec) + " else " + b.text,
		prec: ternaryPrec, kind: k, objects: a.objects && b.objects,
	}
}

// truth is what jq takes an expression for in a condition: all but null and false is true.
func truth(e expr) expr {
	if e.kind == boolKind {
		return e
	}
	return expr{text: e.at(comparePrec+1) + " not in [None, False]", prec: comparePrec, kind: boolKind}
}
