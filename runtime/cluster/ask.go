package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/starling-operator/starling/runtime/effect"
)

// Ask implements [builtins.Answerer].
func (c *Client) Ask(ctx context.Context, q effect.Ask) (map[string]any, error) {
	act := action{word: "ask for", ref: q.Ref, what: q.String()}
	m, err := c.Mapping(ctx, q.Ref.APIVersion, q.Ref.Kind)
	if err != nil {
		return nil, c.explain(err, act)
	}
	act.mapping = m
	body, err := json.Marshal(q.Object)
	if err != nil {
		return nil, fmt.Errorf("the question is no JSON: %w", err)
	}
	r, err := c.request(http.MethodPost, m, q.Ref.Namespace, q.Ref.Name)
	if err != nil {
		return nil, err
	}
	if q.Subresource != "" {
		r = r.Suffix(q.Subresource)
	}
	answer, err := c.do(ctx, r.SetHeader("Content-Type", jsonType).Body(body))
	if err != nil {
		if missingResource(err) {
			c.forgetKind(m)
			err = notServed(q.Ref.APIVersion, q.Ref.Kind)
		}
		return nil, c.explain(err, act)
	}
	obj, err := decodeObject(answer)
	if err != nil {
		return nil, err
	}
	status, _ := obj["status"].(map[string]any)
	return status, nil
}
