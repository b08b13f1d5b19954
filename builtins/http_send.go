package builtins

import (
	"errors"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

func callHTTPSend(c *call) (starlark.Value, error) {
	method := c.Str("method")
	if !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method) {
		return nil, fmt.Errorf("method: %q is none; use GET, POST, PUT, PATCH or DELETE", spec.Clip(method))
	}
	r, err := c.httpRequest(method)
	if err != nil {
		return nil, err
	}
	if err := c.clientTLS(&r, "cert_key"); err != nil {
		return nil, err
	}
	if err := c.httpBody(&r, maxMessage); err != nil {
		return nil, err
	}
	m := effect.Message{Request: r, Key: c.Str("key"), Pos: c.Pos()}
	switch {
	case c.Arg("key") != nil && m.Key == "":
		return nil, errors.New("key: is empty; leave it out for a message without one")
	case len(m.Key) > 200:
		return nil, errors.New("key: is longer than 200 characters")
	}
	if len(c.run.Effects.Messages) >= maxMessages {
		return nil, &spec.LimitError{Limit: "effects", Detail: fmt.Sprintf("more than %d messages in one run", maxMessages)}
	}
	if err := c.run.spend(len(c.run.Effects.Messages), "messages", m.Size()+len(m.Key)); err != nil {
		return nil, err
	}
	c.run.Effects.Messages = append(c.run.Effects.Messages, m)
	return nil, nil
}
