package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhookCommand as the first argument makes this program a validating webhook as one
// writes it in Go with the standard library.
const webhookCommand = "bare-webhook"

// teamLabel is what Pods must have.
const teamLabel = "team"

// webhook answers reviews of Pods over TLS, and prints its address.
func webhook(args []string) error {
	flags := flag.NewFlagSet(webhookCommand, flag.ContinueOnError)
	certs := flags.String("certs", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: http.HandlerFunc(review), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	fmt.Println(ln.Addr())
	err = server.ServeTLS(ln, filepath.Join(*certs, "tls.crt"), filepath.Join(*certs, "tls.key"))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// review answers one AdmissionReview.
func review(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
	var in admissionv1.AdmissionReview
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil || in.Request == nil {
		http.Error(w, "no AdmissionReview", http.StatusBadRequest)
		return
	}
	var pod corev1.Pod
	if err := json.Unmarshal(in.Request.Object.Raw, &pod); err != nil {
		http.Error(w, "no Pod", http.StatusBadRequest)
		return
	}
	out := admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true}}
	if why := refused(&pod); why != "" {
		out.Response.Allowed, out.Response.Result = false, &metav1.Status{Message: why}
	}
	answer, err := json.Marshal(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // who does not wait for it has no use for an error
}

// refused says what is wrong with a Pod, as the hook does.
func refused(pod *corev1.Pod) string {
	if pod.Labels[teamLabel] == "" {
		return "label " + teamLabel + " is missing"
	}
	for _, c := range pod.Spec.Containers {
		if c.Resources.Limits.Memory().IsZero() {
			return "container " + c.Name + " has no memory limit"
		}
	}
	return ""
}
