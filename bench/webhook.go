package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"path/filepath"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// teamLabel is what Pods must have.
const teamLabel = "team"

// webhook answers reviews of Pods over TLS, as one writes it in Go with the standard library, and prints its address.
func (s *bare) webhook() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: http.HandlerFunc(review), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	go func() {
		<-s.ctx.Done()
		_ = server.Close()
	}()
	fmt.Println(ln.Addr())
	err = server.ServeTLS(ln, filepath.Join(s.certs, "tls.crt"), filepath.Join(s.certs, "tls.key"))
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
	answered := &admissionv1.AdmissionResponse{UID: in.Request.UID, Allowed: true}
	if why := refused(&pod); why != "" {
		answered.Allowed, answered.Result = false, &metav1.Status{Message: why}
	}
	answer, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: answered})
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
