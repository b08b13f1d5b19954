package record_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

func TestTheKeyIsMadeOnce(t *testing.T) {
	api := apitest.New(t)
	client, err := cluster.New(cluster.Options{Config: api.Config(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	o := cluster.SecretKey{Client: client, Namespace: "ops", Name: "starling", Instance: "ops.starling"}
	const missing = "there is no Secret ops/starling-records with the key of its records"
	if _, err := record.FetchKey(t.Context(), o); err == nil || err.Error() != missing {
		t.Errorf("got %v, want %s", err, missing)
	}
	made, err := record.MakeKey(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, get := range []func() (*record.Key, error){
		func() (*record.Key, error) { return record.FetchKey(t.Context(), o) },
		func() (*record.Key, error) { return record.MakeKey(t.Context(), o) },
	} {
		if again, err := get(); err != nil || again.ID() != made.ID() {
			t.Errorf("another key: %v", err)
		}
	}
	obj := api.Object("v1", "Secret", "ops", "starling-records")
	meta, _ := obj["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	if labels["starling.dev/instance"] != "ops.starling" || obj["type"] != "starling.dev/records" {
		t.Errorf("the Secret is %v", obj)
	}
	// Another instance has its own key.
	o.Name, o.Instance = "second", "ops.second"
	if other, err := record.MakeKey(t.Context(), o); err != nil || other.ID() == made.ID() {
		t.Errorf("the same key: %v", err)
	}
	obj["data"] = map[string]any{"key": "c2hvcnQ="}
	api.Put(obj)
	o.Name, o.Instance = "starling", "ops.starling"
	const broken = "Secret ops/starling-records holds no key of records in data.key; delete it, and a new one is made"
	if _, err := record.MakeKey(t.Context(), o); err == nil || err.Error() != broken {
		t.Errorf("got %v, want %s", err, broken)
	}
	api.Remove("v1", "Secret", "ops", "starling-records")
	api.Deny("create secrets", 403)
	if _, err := record.MakeKey(t.Context(), o); !errors.Is(err, record.ErrOff) || !strings.Contains(err.Error(), "not allowed to create secrets in namespace ops") {
		t.Errorf("got %v", err)
	}
}
