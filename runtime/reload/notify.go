package reload

import (
	"github.com/fsnotify/fsnotify"
)

// notifier hears of changes in folders.
type notifier interface {
	// add watches a folder, not those in it. It may be watched already.
	add(dir string) error
	remove(dir string)
	// events names what has changed.
	events() <-chan string
	close()
}

// systemNotifier is that of the operating system.
type systemNotifier struct {
	watcher *fsnotify.Watcher
	out     chan string
	done    chan struct{}
	ended   chan struct{}
}

func newSystemNotifier() (notifier, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	n := &systemNotifier{watcher: w, out: make(chan string), done: make(chan struct{}), ended: make(chan struct{})}
	go n.run()
	return n, nil
}

func (n *systemNotifier) run() {
	defer close(n.ended)
	for {
		name := ""
		select {
		case <-n.done:
			return
		case ev, open := <-n.watcher.Events:
			if !open {
				return
			}
			if ev.Op == fsnotify.Chmod {
				continue
			}
			name = ev.Name
		case _, open := <-n.watcher.Errors:
			if !open {
				return
			}
			name = "" // events were lost
		}
		select {
		case n.out <- name:
		case <-n.done:
			return
		}
	}
}

func (n *systemNotifier) add(dir string) error  { return n.watcher.Add(dir) }
func (n *systemNotifier) remove(dir string)     { _ = n.watcher.Remove(dir) } // it may be gone
func (n *systemNotifier) events() <-chan string { return n.out }

func (n *systemNotifier) close() {
	close(n.done)
	<-n.ended
	_ = n.watcher.Close()
}

// deaf hears nothing.
type deaf struct{}

func (deaf) add(string) error      { return nil }
func (deaf) remove(string)         {}
func (deaf) events() <-chan string { return nil }
func (deaf) close()                {}
