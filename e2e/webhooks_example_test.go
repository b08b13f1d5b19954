package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/modules/status"
)

// The promises of examples/webhooks.
func TestWebhooksExample(t *testing.T) {
	t.Parallel()
	f := example(t, "webhooks")
	t.Cleanup(func() {
		_ = shared.Dynamic.Resource(definitions).Delete(context.Background(), "backups.example.starling.dev", metav1.DeleteOptions{})
	})
	t.Cleanup(func() { // they hold for all namespaces, and nobody answers any more
		own := metav1.ListOptions{LabelSelector: "starling.dev/instance=" + f.ns + ".starling"}
		registered := shared.Client.AdmissionregistrationV1()
		_ = registered.ValidatingWebhookConfigurations().DeleteCollection(context.Background(), metav1.DeleteOptions{}, own)
		_ = registered.MutatingWebhookConfigurations().DeleteCollection(context.Background(), metav1.DeleteOptions{}, own)
	})
	f.start(webhookArgs(t)...)
	f.waitState("backups", status.ModuleReady)
	f.waitConfigurations(2)
	f.nothingToPlan()

	config := rest.CopyConfig(shared.Config)
	w := &warnings{}
	config.WarningHandler = w
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns := shared.Namespace(t)
	backups := func(version string) dynamic.ResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: "example.starling.dev", Version: version, Resource: "backups"}).Namespace(ns)
	}
	text, err := os.ReadFile("../examples/webhooks/backup.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	f.eventually("a backup is complete", func() error {
		// The API server learns of conversion and webhooks a moment after they were written.
		_ = backups("v1").Delete(t.Context(), "nightly", metav1.DeleteOptions{})
		_, err := backups("v1alpha1").Patch(t.Context(), "nightly", types.ApplyPatchType, []byte(strings.ReplaceAll(string(text), "namespace: default", "namespace: "+ns)), metav1.PatchOptions{FieldManager: "e2e"})
		if err != nil {
			return err
		}
		o, err := backups("v1").Get(t.Context(), "nightly", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got = fmt.Sprint(o.Object["spec"]); got != "map[keep:map[days:14] schedule:map[cron:0 3 * * * timezone:Europe/Oslo]]" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	old, err := backups("v1alpha1").Get(t.Context(), "nightly", metav1.GetOptions{})
	if err != nil || fmt.Sprint(old.Object["spec"]) != "map[keepDays:14 schedule:Europe/Oslo 0 3 * * *]" {
		t.Errorf("%v %v", old, err)
	}
	set := func(spec string, dryRun ...string) error {
		_, err := backups("v1").Patch(t.Context(), "nightly", types.MergePatchType, []byte(spec), metav1.PatchOptions{DryRun: dryRun})
		return err
	}
	f.eventually("backups are checked", func() error {
		if set(`{"spec": {"keep": {"days": 3}}}`, metav1.DryRunAll) == nil {
			return errors.New("they are not yet")
		}
		return nil
	})
	for patch, want := range map[string]string{
		`{"spec": {"keep": {"days": 3}}}`:           "spec.keep.days: 3 is less than 14, so backups would be deleted",
		`{"spec": {"schedule": {"cron": "daily"}}}`: `spec.schedule.cron: "daily" has not five fields`,
	} {
		if err := set(patch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", patch, err, want)
		}
	}
	if err := set(`{"metadata": {"annotations": {"example.starling.dev/shorten": "yes"}}, "spec": {"keep": {"days": 3}}}`); err != nil {
		t.Error(err)
	}
	if err := set(`{"spec": {"keep": {"days": 100}}}`); err != nil || len(w.texts) != 1 || !strings.Contains(w.texts[0], "backups of 100 days cost a lot; most keep them 14") {
		t.Errorf("%v, warnings %q", err, w.texts)
	}
	// The user's config counts in reviews.
	f.configure(map[string]string{"backups": "keepDays: 7\n"})
	f.eventually("the config counts", func() error {
		if err := set(`{"metadata": {"annotations": {"example.starling.dev/shorten": "yes"}}, "spec": {"keep": null}}`); err != nil {
			return err
		}
		o, err := backups("v1").Get(t.Context(), "nightly", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := fmt.Sprint(o.Object["spec"].(map[string]any)["keep"]); got != "map[days:7]" {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}
