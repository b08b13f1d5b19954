package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// admissionConfig has the API server show a certificate to the webhooks that it asks for
// reviews, whichever they are. The authority signs nothing else: pki/webhooks/ca.crt.
const admissionConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %[1]q}
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %[1]q}
`

// webhookClient writes that configuration, and returns its file.
func (c *certs) webhookClient() (file string, err error) {
	own := &certs{dir: c.path("webhooks")}
	if err := own.openAuthority(); err != nil {
		return "", err
	}
	crt, key, err := own.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}})
	if err != nil {
		return "", err
	}
	users := clientcmdapi.NewConfig()
	users.AuthInfos["*"] = &clientcmdapi.AuthInfo{ClientCertificateData: crt, ClientKeyData: key}
	kubeconfig, file := own.path("users.kubeconfig"), own.path("admission.yaml")
	return file, errors.Join(
		clientcmd.WriteToFile(*users, kubeconfig),
		os.WriteFile(file, fmt.Appendf(nil, admissionConfig, kubeconfig), 0o600),
	)
}
