package store

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ListOptions are what a list may say beside its selectors.
type ListOptions struct {
	Selection
	// Limit is how many objects an answer may have, 0 for all; Continue is the
	// token of the answer before.
	Limit    int64
	Continue string
	// Version and Match are the list's resourceVersion and resourceVersionMatch.
	Version string
	Match   metav1.ResourceVersionMatch
}

// List is the answer to a list.
type List struct {
	// Items are in the order of namespace and name. Do not change them.
	Items []map[string]any
	// Version is the state that the list shows: watches go on from it.
	Version string
	// Continue asks for the next page; "" at the end.
	Continue string
	// Remaining is how many objects follow, nil when that is not known.
	Remaining *int64
}

// token is what a Continue holds.
type token struct {
	Version int64  `json:"rv"`
	Start   string `json:"start"`
}

// List returns the objects that a target without a name and a selection describe.
func (s *Store) List(t Target, o ListOptions) (List, error) {
	s.mu.Lock()
	defer s.unlock()
	k, err := s.find(t, "list")
	if err != nil {
		return List{}, err
	}
	return s.list(k, t, o)
}

func (s *Store) list(k *kind, t Target, o ListOptions) (List, error) {
	match, err := k.matcher(t.Namespace, o.Selection)
	if err != nil {
		return List{}, err
	}
	if err := s.loadList(k, t.Namespace, o.Selection); err != nil {
		return List{}, err
	}
	at, start, err := s.listFrom(o)
	if err != nil {
		return List{}, err
	}
	objects, keys := s.at(k, at)
	out := List{Version: strconv.FormatInt(at, 10), Items: []map[string]any{}}
	var causes []metav1.StatusCause // of objects that cannot be converted
	first, _ := slices.BinarySearch(keys, start)
	for i, key := range keys[first:] {
		obj, err := s.pick(k, t.Namespace, match, objects[key])
		switch {
		case errors.As(err, new(undecodable)):
			path, text := corruptText(k, "/registry", key, err)
			causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: path, Message: text})
			continue
		case err != nil:
			return List{}, err
		case obj == nil:
			continue
		}
		if o.Limit > 0 && int64(len(out.Items)) == o.Limit {
			text, _ := json.Marshal(token{Version: at, Start: key})
			out.Continue = base64.RawURLEncoding.EncodeToString(text)
			if o.Labels == "" && o.Fields == "" {
				n := int64(0)
				for _, key := range keys[first+i:] {
					if match(objects[key]) {
						n++
					}
				}
				out.Remaining = &n
			}
			break
		}
		out.Items = append(out.Items, obj)
	}
	if len(causes) > 0 {
		return List{}, unreadable(k, causes)
	}
	return out, nil
}

// listFrom returns the state that a list shows, and the key it begins with.
func (s *Store) listFrom(o ListOptions) (at int64, start string, err error) {
	if o.Continue != "" {
		var tok token
		text, err := base64.RawURLEncoding.DecodeString(o.Continue)
		if err != nil || json.Unmarshal(text, &tok) != nil || tok.Version < 1 || tok.Version > s.version {
			return 0, "", apierrors.NewBadRequest("invalid continue token")
		}
		if o.Version != "" && o.Version != "0" {
			return 0, "", apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		if tok.Version < s.oldest {
			return 0, "", apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
		}
		return tok.Version, tok.Start, nil
	}
	at = s.version
	if o.Version == "" || o.Version == "0" {
		return at, "", nil
	}
	version, err := parseVersion(o.Version)
	if err != nil {
		return 0, "", err
	}
	if version > s.version {
		return 0, "", tooLarge(version, s.version)
	}
	if o.Match == metav1.ResourceVersionMatchExact {
		if version < s.oldest {
			return 0, "", apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
		}
		return version, "", nil
	}
	return at, "", nil
}

func parseVersion(text string) (int64, error) {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: it is no number", text))
	}
	return version, nil
}

// tooLarge is the answer to a version that is not there yet.
func tooLarge(version, now int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, now), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// at returns the objects of a kind as they were at a version that the history
// reaches back to.
func (s *Store) at(k *kind, version int64) (map[string]map[string]any, []string) {
	t := s.table(k.keptIn())
	if version >= s.version {
		return t.objects, t.keys
	}
	objects := maps.Clone(t.objects)
	for i := len(s.history) - 1; i >= 0 && s.history[i].version > version; i-- {
		c := s.history[i]
		if c.resource != k.keptIn() {
			continue
		}
		if c.before == nil {
			delete(objects, c.key)
		} else {
			objects[c.key] = c.before
		}
	}
	return objects, slices.Sorted(maps.Keys(objects))
}
