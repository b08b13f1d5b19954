package release

import (
	"errors"
	"net/url"
	"regexp"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/lane"
	plain "github.com/starling-operator/starling/runtime/object"
)

// worded is an error in words for people, without secrets. Code finds in it what it looks for in the cause.
type worded struct {
	text  string
	cause error
}

func (e *worded) Error() string { return e.text }

// Unwrap gives the cause, whose text nobody may show.
func (e *worded) Unwrap() error { return e.cause }

func tidy(err error) error { return &worded{chart.Tidy(err.Error()), err} }

// passing marks the error of an operation that an API server in trouble has failed, or a right that is missing: rights
// come without an event. A revision that lacks one is not made again soon, for each try is one more.
func passing(err error) error {
	if err == nil {
		return nil
	}
	if !inTrouble(err) && (errors.Is(err, errInRevision) || !cluster.LacksRight(err)) {
		return err
	}
	return &lane.Passing{Err: err}
}

// errInRevision is in the cause of the error of a revision that was made.
var errInRevision = errors.New("a revision was made")

// inTrouble says that the API server has not answered, or only that it is overloaded or fails. A webhook of somebody
// else that fails is no trouble of the server: it may last, and each try of a release is a revision.
func inTrouble(err error) bool {
	_, unanswered := errors.AsType[*url.Error](err)
	return (unanswered || cluster.InTrouble(err)) && !ofWebhooks.MatchString(err.Error())
}

// ofWebhooks are the words of the API server for a webhook that does not answer.
var ofWebhooks = regexp.MustCompile(`failed calling (admission )?webhook |failed to call webhook: |conversion webhook for .* failed: `)

// Helm, the template engine and the API server quote freely. So errors and log lines of a
// release are shown without the secrets of its target.

var secretKind = regexp.MustCompile(`(?m)^kind:\s*["']?Secret\b`)

// newMask collects the secrets of a target: its known secrets, values that sound like one, what it has looked up, and,
// when it was rendered, its manifests.
func newMask(t Target, r rendering) *plain.Mask {
	m := &plain.Mask{}
	if t.Secrets != nil {
		for _, text := range t.Secrets() {
			m.Secret(text)
		}
	}
	m.Sounding(t.Values)
	for _, obj := range r.lookedUp {
		m.Object(obj)
	}
	for _, text := range r.files {
		if !secretKind.MatchString(text) {
			continue
		}
		for _, doc := range plain.Documents(text) {
			var obj map[string]any
			if yaml.Unmarshal([]byte(doc), &obj) == nil {
				m.Object(obj)
			}
		}
	}
	return m
}
