package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	acorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

// loopCommand as the first argument makes this program a bare client-go loop: what
// Starling is compared with runs in its own process, as Starling does.
const loopCommand = "bare-loop"

// loop mirrors each new ConfigMap of one side into a second one, with as little as
// client-go needs for that.
func loop(args []string) error {
	flags := flag.NewFlagSet(loopCommand, flag.ContinueOnError)
	from := flags.String("side", "", "")
	apply := flags.Bool("apply", false, "")
	ctx, stop, client, err := bareClient(flags, args)
	if err != nil {
		return err
	}
	defer stop()
	w, err := client.CoreV1().ConfigMaps(sourceNamespace).Watch(ctx, metav1.ListOptions{LabelSelector: sideLabel + "=" + *from})
	if err != nil {
		return err
	}
	fmt.Println("watches")
	write := create
	if *apply {
		write = applyMirror
	}
	// The server ends the watch of a client that does not read while it writes.
	news := make(chan *corev1.ConfigMap, 10_000)
	go func() {
		defer close(news)
		for event := range w.ResultChan() {
			if source, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Added {
				news <- source
			}
		}
	}()
	for source := range news {
		if err := write(ctx, client, source); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		return errors.New("the watch of the bare loop has ended")
	}
	return nil
}

// create is the least that a program can do.
func create(ctx context.Context, client kubernetes.Interface, source *corev1.ConfigMap) error {
	mirror := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: mirrorNamespace},
		Data:       source.Data,
	}
	_, err := client.CoreV1().ConfigMaps(mirrorNamespace).Create(ctx, mirror, metav1.CreateOptions{})
	return err
}

// applyMirror is the same write as k8s.apply of a hook.
func applyMirror(ctx context.Context, client kubernetes.Interface, source *corev1.ConfigMap) error {
	mirror := acorev1.ConfigMap(source.Name, mirrorNamespace).WithData(source.Data)
	_, err := client.CoreV1().ConfigMaps(mirrorNamespace).Apply(ctx, mirror, metav1.ApplyOptions{FieldManager: "bare-loop", Force: true})
	return err
}
