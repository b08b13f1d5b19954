package cluster

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// serveKubelet has a server with TLS stand for the kubelet of a node until the test ends, and says in its status where
// the API server finds it.
func serveKubelet(t testing.TB, status *corev1.NodeStatus, h http.HandlerFunc) {
	s := httptest.NewTLSServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	status.DaemonEndpoints = corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(s.Listener.Addr().(*net.TCPAddr).Port)}}
	status.DeclaredFeatures = []string{"ExtendWebSocketsToKubelet"} // else the API server speaks SPDY to it
}

// exec runs a command in a pod, for the API server: `starling`, with the folders of the pod, as a process beside that
// of the pod. Its stdin ends with the connection.
func (p *Pods) exec(w http.ResponseWriter, r *http.Request) {
	pod := p.of(r.URL.Path)
	if pod == nil {
		http.NotFound(w, r)
		return
	}
	argv := r.URL.Query()["command"]
	s := OpenSocket(w, r)
	defer s.Close()
	if argv[0] != "starling" {
		s.Say(remotecommand.StreamStdErr, "there is no such file in the image")
		s.End(127)
		return
	}
	var args []string
	for _, arg := range argv[1:] {
		args = append(args, pod.path(arg))
	}
	cmd := exec.Command(p.program, args...)
	cmd.Stdout, cmd.Stderr = channel{s, remotecommand.StreamStdOut}, channel{s, remotecommand.StreamStdErr}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		DieWithParent(cmd)
		err = cmd.Start()
	}
	if err != nil {
		p.t.Errorf("a command in pod %s: %v", pod.name, err)
		return
	}
	p.busy.Go(func() {
		defer stdin.Close()
		_ = s.into(stdin)
	})
	err = cmd.Wait()
	if err != nil && !errors.As(err, new(*exec.ExitError)) && !errors.Is(err, io.ErrClosedPipe) { // who follows a log goes when they like
		p.t.Errorf("a command in pod %s: %v", pod.name, err)
	}
	s.End(cmd.ProcessState.ExitCode())
}

// of is the pod that a path is about.
func (p *Pods) of(path string) *pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.pods {
		if strings.HasPrefix(path, "/exec/"+r.namespace+"/"+r.name+"/") && r.process.cmd != nil {
			return r
		}
	}
	return nil
}

// path puts the folders of this machine in the place of those of the pod.
func (r *pod) path(arg string) string {
	for path, folder := range r.folders {
		if arg == path {
			return folder
		}
		arg = strings.Replace(arg, "="+path, "="+folder, 1)
	}
	return arg
}

// channel is the output of a command.
type channel struct {
	s  *Socket
	of byte
}

func (c channel) Write(data []byte) (int, error) {
	if !c.s.Say(c.of, string(data)) {
		return 0, io.ErrClosedPipe
	}
	return len(data), nil
}

// into writes what the command is given until its end.
func (s *Socket) into(w io.Writer) error {
	for {
		op, payload, err := s.Hear()
		switch {
		case err != nil:
			return err
		case op != 2 || len(payload) == 0 || payload[0] != remotecommand.StreamStdIn: // such as a ping
			if len(payload) == 2 && payload[0] == remotecommand.StreamClose {
				return nil
			}
		default:
			if _, err := w.Write(payload[1:]); err != nil {
				return err
			}
		}
	}
}
