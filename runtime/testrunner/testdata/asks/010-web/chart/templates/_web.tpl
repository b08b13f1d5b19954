{{- define "web.monitored" -}}
{{ if .Capabilities.APIVersions.Has "example.org/v1/Monitor" }}yes{{ end }}
{{- end -}}
