{{/* One certificate for all files of this render: that of the Secret, if it is there. */}}
{{- define "policy.certificate" -}}
{{- $found := lookup "v1" "Secret" .Release.Namespace "policy-tls" -}}
{{- if $found -}}
{{- dict "ca" (index $found.data "ca.crt") "crt" (index $found.data "tls.crt") "key" (index $found.data "tls.key") | toJson -}}
{{- else -}}
{{- $ca := genCA "policy-ca" (int .Values.days) -}}
{{- $names := list (printf "policy.%s.svc" .Release.Namespace) (printf "policy.%s.svc.cluster.local" .Release.Namespace) -}}
{{- $cert := genSignedCert (first $names) nil $names (int .Values.days) $ca -}}
{{- dict "ca" ($ca.Cert | b64enc) "crt" ($cert.Cert | b64enc) "key" ($cert.Key | b64enc) | toJson -}}
{{- end -}}
{{- end -}}
