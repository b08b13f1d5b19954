package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
)

// bare is a side that Starling is compared with, in a separate process, as Starling is one; and the flags that it is
// started with.
type bare struct {
	ctx    context.Context // ends when the bench ends the side
	config *rest.Config
	client kubernetes.Interface

	workers, n              int
	state, namespace, certs string
}

// bareSides are what this program is beside the bench, by its first argument.
func bareSides() map[string]func(*bare) error {
	return map[string]func(*bare) error{
		sideApply: (*bare).applyMirrors, sideCreate: (*bare).createMirrors, sideController: (*bare).controller,
		sideWebhook: (*bare).webhook, sideSet: (*bare).applySet, sideHealer: (*bare).heal, sideOwner: (*bare).own,
	}
}

// runBare runs the side that is named first; false: none is.
func runBare(args []string) (is bool, err error) {
	if len(args) == 0 || bareSides()[args[0]] == nil {
		return false, nil
	}
	side := &bare{}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	flags.IntVar(&side.workers, "workers", 0, "")
	flags.IntVar(&side.n, "n", 0, "")
	flags.StringVar(&side.state, "state", "", "")
	flags.StringVar(&side.namespace, "namespace", "", "")
	flags.StringVar(&side.certs, "certs", "", "")
	if err := flags.Parse(args[1:]); err != nil {
		return true, err
	}
	if side.config, err = adminConfig(*kubeconfig); err != nil {
		return true, err
	}
	if side.client, err = kubernetes.NewForConfig(side.config); err != nil {
		return true, err
	}
	var stop context.CancelFunc
	side.ctx, stop = signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := bareSides()[args[0]](side); side.ctx.Err() == nil {
		return true, err
	}
	return true, nil // a request under way fails as the side ends
}

// each calls do for each object of a watch, one after the other.
func each[T any](s *bare, w watch.Interface, do func(watch.EventType, T) error) error {
	fmt.Println("watches")
	// The server ends the watch of a client that does not read while it writes.
	events := make(chan watch.Event, 10_000)
	go func() {
		defer close(events)
		for event := range w.ResultChan() {
			events <- event
		}
	}()
	for event := range events {
		if obj, ok := event.Object.(T); ok {
			if err := do(event.Type, obj); err != nil {
				return err
			}
		}
	}
	if s.ctx.Err() == nil {
		return errors.New("the watch of the bare loop has ended")
	}
	return nil
}

// newQueue makes a queue of keys, as controllers have one.
func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
}

// work has workers reconcile the keys of a queue, until the side ends.
func (s *bare) work(queue workqueue.TypedRateLimitingInterface[string], reconcile func(key string) error) {
	var busy sync.WaitGroup
	for range s.workers {
		busy.Go(func() {
			for {
				key, over := queue.Get()
				if over {
					return
				}
				if err := reconcile(key); err != nil {
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
			}
		})
	}
	<-s.ctx.Done()
	queue.ShutDown()
	busy.Wait()
}
