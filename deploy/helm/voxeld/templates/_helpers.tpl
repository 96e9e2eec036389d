{{- define "voxeld.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "voxeld.selector" -}}
app.kubernetes.io/name: voxeld
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "voxeld.labels" -}}
{{ include "voxeld.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "voxeld.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Until there is a token, there is one pod, which creates the world. */}}
{{- define "voxeld.replicas" -}}
{{ if .Values.joinSecret }}{{ .Values.replicas | int }}{{ else }}1{{ end }}
{{- end }}

{{/* Two pods that end together can be the majority of a region. */}}
{{- define "voxeld.guard" -}}
{{- if not (or (eq .Values.antiAffinity "hard") (eq .Values.antiAffinity "soft")) }}{{ fail "antiAffinity: hard or soft" }}{{ end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}{{ fail "ingress.host: set the name that players open" }}{{ end }}
{{- $now := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "voxeld.name" .) }}
{{- if and $now (not .Values.joinSecret) }}
{{- range (index $now.spec.template.spec.containers 0).env }}
{{- if eq .name "VOXELD_JOIN" }}{{ fail "joinSecret must stay set: a first pod that lost its volume would create another world" }}{{ end }}
{{- end }}
{{- end }}
{{- if and $now (lt (add (include "voxeld.replicas" . | int) 1) ($now.spec.replicas | int64)) }}
{{- fail (printf "there are %d pods: lower replicas by one at a time, and wait until the world is healthy (README.md, Fewer nodes); joinSecret must stay set" ($now.spec.replicas | int)) }}
{{- end }}
{{- end }}
