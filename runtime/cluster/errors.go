package cluster

import (
	"context"
	_ "embed" // of the table
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/definition"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/wording"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage bounds what is shown of a server's message, in bytes.
const maxMessage = 600

// Error is a failed call to the API server, in one line for people. It unwraps to
// client-go's status error, so apierrors.IsForbidden and the like hold.
type Error struct {
	msg string
	err error
}

// Error returns the line.
func (e *Error) Error() string { return e.msg }

// Unwrap returns the cause. Its text may hold what the object holds: do not print
// it.
func (e *Error) Unwrap() error { return e.err }

// Unreadable is for readers of hooks: the API server forbids the call, or serves no such kind.
func (e *Error) Unreadable() bool {
	return apierrors.IsForbidden(e.err) || errors.Is(e.err, ErrNotServed)
}

// action is what was tried, for the text of its error.
type action struct {
	word    string // what people call it
	ref     effect.Ref
	mapping Mapping
	what    string // instead of ref

	// known returns what an error about a Secret may quote; nil, or none: nobody knows.
	known func() *object.Parts
}

// hides returns what hides the content of the object in the server's message; nil: nothing
// does, and the message is not shown. Of all but Secrets the message is cut by its form.
func (a action) hides() func(string) string {
	if a.ref.Kind != "Secret" {
		return func(text string) string { return text }
	}
	if a.known != nil {
		if parts := a.known(); parts != nil {
			return parts.Hide
		}
	}
	return nil
}

func (a action) String() string {
	switch {
	case a.what != "":
		return a.word + " " + a.what
	case a.ref.Name != "":
		return a.word + " " + a.ref.String()
	case a.ref.Namespace != "":
		return a.word + " " + a.ref.Kind + " in namespace " + a.ref.Namespace
	}
	return a.word + " " + a.ref.Kind
}

// Explain turns an error of [Client.Each] or [Client.Watch] into a line for
// people. verb is list or watch. A nil error stays nil.
func (c *Client) Explain(err error, verb string, m Mapping, namespace string) error {
	return c.explain(err, action{
		word:    verb,
		ref:     effect.Ref{APIVersion: m.APIVersion(), Kind: m.Kind, Namespace: namespace},
		mapping: m,
	})
}

// explain makes the error of a failed call.
func (c *Client) explain(err error, a action) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) || errors.Is(err, ErrNotServed) {
		return err
	}
	msg := c.describe(err, a)
	switch {
	case LacksRight(err): // rights come without an event
		err = &lane.Passing{Err: err}
	case changedMeanwhile(err):
		err = &lane.Passing{Err: err, Race: true}
	case InTrouble(err):
		err = &lane.Awaits{Err: err, For: lane.AwaitsServer}
	}
	return &Error{msg: msg, err: err}
}

var (
	rbacDenial  = regexp.MustCompile(`^.*is forbidden: User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"`)
	escalation  = regexp.MustCompile(`is forbidden: user "([^"]*)".* is attempting to grant RBAC permissions not currently held:\s*`)
	ownedFields = regexp.MustCompile(`conflicts? with "([^"]+)"`)
	fieldPaths  = regexp.MustCompile(`(?m)(?:^|[\s:(])(\.?[a-zA-Z][a-zA-Z0-9_-]*(?:(?:\.|\[)[a-zA-Z0-9_\]."=/:-]+)+): `)
	denial      = regexp.MustCompile(`^(.*? denied (?:the )?request)(?::|$)`)
	notDeclared = regexp.MustCompile(`\.([\w.\[\]"=/-]+): field not declared in schema`)
)

//go:embed wording/apiserver.txt
var wordingText string

var rewordings = sync.OnceValue(func() wording.Table { return wording.Read(wordingText, nil) })

// LacksRight says of an error of the API server that a right is missing, in its words: it has no reason for that.
func LacksRight(err error) bool {
	return byRBAC.MatchString(err.Error())
}

var byRBAC = regexp.MustCompile(`is forbidden: (User "[^"]*" cannot |user "[^"]*"[^\n]* is attempting to grant RBAC permissions not currently held)`)

// StorageStarts is the message of an API server whose storage of a kind begins; the reason follows, if it has failed.
const StorageStarts = "storage is (re)initializing"

// describe writes the line. Nothing in it may come from inside the object.
func (c *Client) describe(err error, a action) string {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return fmt.Sprintf("cannot %s: %s", a, transportError(err, c.config.Host))
	}
	status := api.Status()
	switch {
	case apierrors.IsForbidden(err):
		if m := rbacDenial.FindStringSubmatch(status.Message); m != nil {
			where := "in the whole cluster"
			if a.ref.Namespace != "" && (a.mapping.Namespaced || a.mapping.Kind == "") {
				where = "in namespace " + a.ref.Namespace
			}
			return fmt.Sprintf("not allowed to %s %s %s: give Starling's ServiceAccount this right (apiGroups: [%q], resources: [%q], verbs: [%q]; it acts as %s)",
				m[2], m[3], where, m[4], m[3], m[2], m[1])
		}
		if text := escalated(status.Message, a.ref.Kind); text != "" {
			return fmt.Sprintf("cannot %s: %s", a, text)
		}
		if a.word == "exec in" && strings.HasSuffix(strings.TrimSpace(status.Message), "is forbidden:") { // it names no right
			return fmt.Sprintf("not allowed to create pods/exec in namespace %s: give Starling's ServiceAccount this right, beside get", a.ref.Namespace)
		}
	case a.word == "apply" && apply.TakesNoApply(err):
		return fmt.Sprintf("cannot %s: its API server has no server-side apply for this kind: use k8s.create and k8s.patch, k8s.apply_set, a child of a controller, or the module's chart", a)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("cannot %s: the API server at %s does not accept our credentials: renew the token or certificate", a, c.config.Host)
	case apierrors.IsConflict(err):
		if owners := conflictOwners(err); owners != "" {
			return fmt.Sprintf("cannot %s: other managers own fields of it (%s): use force=True to take them over, or leave these fields out", a, owners)
		}
		return fmt.Sprintf("cannot %s: it was changed by someone else at the same time; it is tried again", a)
	case apierrors.IsAlreadyExists(err):
		return fmt.Sprintf("cannot %s: it is there already: use if_absent=True to leave it alone, or k8s.apply to change it", a)
	case apierrors.IsTooManyRequests(err) && a.word == "evict":
		return fmt.Sprintf("cannot %s: a PodDisruptionBudget does not allow it now; it is tried again", a)
	case apierrors.IsTooManyRequests(err) && strings.HasPrefix(status.Message, StorageStarts):
		return fmt.Sprintf("cannot %s: the API server does not hold it yet: %s", a, safeMessage(status, a))
	case apierrors.IsTooManyRequests(err):
		return fmt.Sprintf("cannot %s: the API server is overloaded and asks to come back later", a)
	}
	return fmt.Sprintf("cannot %s: %s", a, safeMessage(status, a))
}

// escalated is the line for a role, or a binding of one, that gives rights which Starling lacks; "" is for another
// message.
func escalated(text, kind string) string {
	at := escalation.FindStringSubmatchIndex(text)
	if at == nil {
		return ""
	}
	right := `bind on the role (resources: ["clusterroles"] or ["roles"], verbs: ["bind"]`
	if kind == "Role" || kind == "ClusterRole" {
		right = fmt.Sprintf(`escalate on roles (resources: [%q], verbs: ["escalate"]`, strings.ToLower(kind)+"s")
	}
	return cut(fmt.Sprintf("it gives rights that Starling lacks, and nobody may give those: give Starling's ServiceAccount the verb %s, apiGroups: [\"rbac.authorization.k8s.io\"]; it acts as %s), or what it lacks: %s",
		right, text[at[2]:at[3]], message.Line(text[at[1]:])))
}

// conflictOwners names the fields for which err is a conflict, and their managers; "": it is none of fields.
func conflictOwners(err error) string {
	var api apierrors.APIStatus
	if !apierrors.IsConflict(err) || !errors.As(err, &api) || api.Status().Details == nil {
		return ""
	}
	var out []string
	for _, cause := range api.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		owner := cause.Message
		if m := ownedFields.FindStringSubmatch(owner); m != nil {
			owner = m[1]
		}
		out = append(out, cause.Field+": "+message.Line(owner))
	}
	return cut(strings.Join(out, ", "))
}

// safeMessage is the server's message without what it quotes from the object. Of a Secret
// whose content is not known, only the paths and the kind of fault are shown.
func safeMessage(s metav1.Status, a action) string {
	secret := a.ref.Kind == "Secret"
	if secret && s.Reason == metav1.StatusReasonNotFound {
		return unquoted(s) // names, which some value may also be
	}
	hide := a.hides()
	if s.Details != nil {
		var out []string
		for _, cause := range s.Details.Causes {
			if cause.Field == "" {
				continue
			}
			text := cause.Field + ": " + causeText(cause, secret, hide)
			if !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
		if len(out) > 0 {
			return cut(strings.Join(out, "; "))
		}
	}
	if hide == nil {
		return unquoted(s)
	}
	text := s.Message
	if text == "" {
		text = "the API server refuses it: " + string(s.Reason)
	}
	text = notDeclared.ReplaceAllStringFunc(rewordings().Rewrite(text), func(all string) string {
		path := notDeclared.FindStringSubmatch(all)[1]
		text := "the kind has no field " + path
		if near := definition.NearField(a.ref.APIVersion, a.ref.Kind, path); near != "" {
			text += " (did you mean " + near + "?)"
		}
		return text
	})
	return cut(message.Line(hide(text)))
}

// unquoted is what a message about a Secret says that cannot come from inside of it.
func unquoted(s metav1.Status) string {
	if m := denial.FindStringSubmatch(s.Message); m != nil {
		return cut(message.Line(m[1]) + "; what else it says is not shown, because it may quote the secret")
	}
	if s.Reason == metav1.StatusReasonNotFound || s.Reason == metav1.StatusReasonForbidden {
		return cut(message.Line(s.Message))
	}
	paths := fieldPaths.FindAllStringSubmatch(s.Message, -1)
	if len(paths) == 0 {
		return fmt.Sprintf("the API server refuses it (%s); its message is not shown, because it may quote the secret", strings.TrimSpace(fmt.Sprint(s.Code, " ", s.Reason)))
	}
	var out []string
	for _, p := range paths {
		out = append(out, strings.TrimPrefix(p[1], "."))
	}
	return cut("the API server refuses " + strings.Join(slices.Compact(out), ", "))
}

// causeText is one field error without the value that it quotes: "Invalid value:
// "x": must be …" becomes "invalid value: must be …".
func causeText(cause metav1.StatusCause, secret bool, hide func(string) string) string {
	kind, rest, found := strings.Cut(cause.Message, ": ")
	valueless := slices.Contains([]string{"Required value", "Forbidden", "Too long", "Too many"}, kind)
	switch {
	case kind == "Invalid value" || kind == "Unsupported value" || kind == "Duplicate value":
		if rest = afterValue(rest); rest == "" || hide == nil {
			break
		}
		if strings.Contains(rest, "RFC 1123") || strings.Contains(rest, "RFC 1035") { // which has two regular expressions in it
			rest, _, _ = strings.Cut(rest, " (e.g. ")
			rest += "; names.dns_label(text) makes one"
		}
		return lowerFirst(kind) + ": " + message.Line(hide(rest))
	case hide != nil && found && (valueless || !secret):
		return message.Line(lowerFirst(hide(cause.Message)))
	}
	if secret && !valueless || kind == "" {
		kind = strings.TrimPrefix(string(cause.Type), "FieldValue")
	}
	return message.Line(lowerFirst(kind))
}

// afterValue skips the quoted value at the start of text and returns what follows
// its colon, or "" when the value's end cannot be told.
func afterValue(text string) string {
	end := -1
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		end = len(quoted)
	} else if text != "" && strings.ContainsRune("{[", rune(text[0])) {
		d := json.NewDecoder(strings.NewReader(text))
		var skip json.RawMessage
		if d.Decode(&skip) == nil {
			end = int(d.InputOffset())
		}
	} else {
		end = strings.Index(text, ": ")
	}
	if end < 0 || !strings.HasPrefix(text[end:], ": ") {
		return ""
	}
	return text[end+2:]
}

// transportError says why there was no answer.
func transportError(err error, host string) string {
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case errors.Is(err, ErrFenced):
		return ErrFenced.Error()
	case errors.Is(err, ErrStandby):
		return ErrStandby.Error()
	case errors.Is(err, context.Canceled):
		return "stopped"
	case errors.Is(err, context.DeadlineExceeded):
		return "the API server at " + host + " did not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "cannot reach the API server at " + host + ": connection refused"
	case errors.As(err, &dns):
		return "cannot reach the API server at " + host + ": the name " + strconv.Quote(dns.Name) + " cannot be resolved"
	case errors.As(err, &netErr) && netErr.Timeout():
		return "the API server at " + host + " did not answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "the API server at " + host + " cut the connection"
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
		return "cannot reach the API server at " + host + ": " + cut(message.Line(err.Error()))
	}
	return cut(message.Line(err.Error()))
}

func cut(text string) string { return message.Cut(text, maxMessage) }

func lowerFirst(text string) string {
	if text == "" {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}
