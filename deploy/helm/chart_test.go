// Package helm has no code, only tests of the chart: with Helm's own engine, and Kubernetes' own types.
package helm

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

type values = map[string]any

// full sets every value that is empty by default.
func full() values {
	return values{
		"joinSecret": "token", "url": "https://$(POD_NAME).example.org", "replicas": 5,
		"image":            values{"tag": "v1"},
		"imagePullSecrets": []any{values{"name": "registry"}},
		"env":              values{"VOXELD_MINECRAFT": ":25566", "VOXELD_REPLACE_AFTER": "5m"},
		"envFrom":          []any{values{"secretRef": values{"name": "s3"}}},
		"trustedProxy":     []any{"10.0.0.0/8", "fd00::/8"},
		"service": values{
			"perPod": true, "annotations": values{"a": "b"},
			"extraPorts": []any{values{"name": "minecraft", "port": 25566}, values{"name": "luanti", "port": 30000, "protocol": "UDP"}},
		},
		"ingress":                   values{"enabled": true, "className": "nginx", "host": "a.example.org", "tlsSecret": "tls", "annotations": values{"a": "b"}},
		"persistence":               values{"storageClass": "fast"},
		"antiAffinity":              "soft",
		"nodeSelector":              values{"disk": "ssd"},
		"tolerations":               []any{values{"key": "games", "operator": "Exists"}},
		"topologySpreadConstraints": []any{values{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}},
		"priorityClassName":         "high",
		"podAnnotations":            values{"a": "b"},
		"podLabels":                 values{"team": "games"},
		"podMonitor":                values{"enabled": true, "labels": values{"release": "prometheus"}},
		"extraVolumes":              []any{values{"name": "backups", "emptyDir": values{}}},
		"extraVolumeMounts":         []any{values{"name": "backups", "mountPath": "/backups"}},
	}
}

// manifests are what the chart renders to.
type manifests struct {
	set      appsv1.StatefulSet
	services map[string]corev1.Service
	budget   *policyv1.PodDisruptionBudget
	ingress  *networkingv1.Ingress
	monitor  map[string]any
	notes    string
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load("voxeld")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// texts renders the templates of a release named world, in the namespace games. A cluster may be nil.
func texts(t *testing.T, v values, cluster *rest.Config) (map[string]string, error) {
	t.Helper()
	c := load(t)
	all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "world", Namespace: "games"}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	if cluster != nil {
		return engine.RenderWithClient(c, all, cluster)
	}
	return engine.Engine{Strict: true}.Render(c, all)
}

// render fails the test if a manifest has a field that its kind has not, or of another type.
func render(t *testing.T, v values) manifests {
	t.Helper()
	files, err := texts(t, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := manifests{services: map[string]corev1.Service{}}
	strict := func(file, doc string, into any) {
		if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
			t.Errorf("%s: %v\n%s", file, err, doc)
		}
	}
	for file, text := range files {
		if path.Ext(file) == ".txt" {
			m.notes = text
			continue
		}
		for doc := range strings.SplitSeq(text, "\n---\n") {
			var of struct{ Kind string }
			if err := yaml.Unmarshal([]byte(doc), &of); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, doc)
			}
			switch of.Kind {
			case "StatefulSet":
				strict(file, doc, &m.set)
			case "Service":
				var s corev1.Service
				strict(file, doc, &s)
				m.services[s.Name] = s
			case "PodDisruptionBudget":
				strict(file, doc, &m.budget)
			case "Ingress":
				strict(file, doc, &m.ingress)
			case "PodMonitor":
				strict(file, doc, &m.monitor)
			case "":
			default:
				t.Errorf("%s: a %s, which this test does not know", file, of.Kind)
			}
		}
	}
	return m
}

func TestLint(t *testing.T) {
	for _, v := range []values{nil, full()} {
		for _, m := range lint.All("voxeld", v, "games", true).Messages {
			if m.Severity >= support.WarningSev {
				t.Error(m)
			}
		}
	}
}

// Every value is documented, and used by a template.
func TestValues(t *testing.T) {
	c := load(t)
	var templates strings.Builder
	for _, f := range c.Templates {
		templates.Write(f.Data)
	}
	var walk func(prefix string, v values)
	walk = func(prefix string, v values) {
		for key, value := range v {
			if inner, ok := value.(values); ok && len(inner) > 0 && !strings.Contains(templates.String(), "toYaml .Values"+prefix+"."+key) {
				walk(prefix+"."+key, inner)
			} else if !strings.Contains(templates.String(), ".Values"+prefix+"."+key) {
				t.Errorf("no template uses %s.%s", prefix, key)
			}
		}
	}
	walk("", c.Values)
	for _, use := range regexp.MustCompile(`\.Values((?:\.\w+)+)`).FindAllStringSubmatch(templates.String(), -1) {
		at := any(c.Values)
		for key := range strings.SplitSeq(strings.TrimPrefix(use[1], "."), ".") {
			inner, _ := at.(values)
			if _, known := inner[key]; !known {
				t.Errorf("values.yaml does not name %s", use[1])
				break
			}
			at = inner[key]
		}
	}
}

// The first pod is alone until there is a token: a second one would create a second world.
func TestFirstPod(t *testing.T) {
	m := render(t, values{"world": values{"name": "Harbour", "seed": 42}})
	pod := m.set.Spec.Template.Spec
	if *m.set.Spec.Replicas != 1 || len(pod.InitContainers) != 1 || len(pod.Volumes) != 1 {
		t.Fatalf("%d pods, %d init containers, volumes %v", *m.set.Spec.Replicas, len(pod.InitContainers), pod.Volumes)
	}
	want := []string{"init", "--keep", "--name=Harbour", "--sections=4", "--day-length=20m", "--seed=42"}
	if args := pod.InitContainers[0].Args; !slices.Equal(args, want) {
		t.Errorf("init with %q, want %q", args, want)
	}
	if slices.ContainsFunc(pod.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "VOXELD_JOIN" }) {
		t.Error("the first pod joins")
	}
	for _, want := range []string{"exec world-voxeld-0 -c voxeld -- /voxeld invite", "secret generic world-voxeld-join", "--set joinSecret=world-voxeld-join"} {
		if !strings.Contains(m.notes, want) {
			t.Errorf("the notes do not say %q:\n%s", want, m.notes)
		}
	}
}

func TestPods(t *testing.T) {
	for name, v := range map[string]values{"first": nil, "joining": {"joinSecret": "token"}, "full": full()} {
		m := render(t, v)
		pod := m.set.Spec.Template.Spec
		if m.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
			t.Errorf("%s: pods that wait for each other wait for ever when all were down", name)
		}
		s := pod.SecurityContext
		if !*s.RunAsNonRoot || *s.RunAsUser != 65532 || *s.FSGroup != 65532 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: pods are not confined: %+v", name, s)
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("%s: %s is not confined: %+v", name, c.Name, s)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %s has no resources", name, c.Name)
			}
		}
		labels := m.set.Spec.Template.Labels
		for what, selector := range map[string]map[string]string{
			"StatefulSet": m.set.Spec.Selector.MatchLabels, "Service": m.services["world-voxeld"].Spec.Selector,
			"headless Service": m.services["world-voxeld-nodes"].Spec.Selector, "PodDisruptionBudget": m.budget.Spec.Selector.MatchLabels,
		} {
			for key, value := range selector {
				if labels[key] != value {
					t.Errorf("%s: the %s does not select the pods", name, what)
				}
			}
		}
		if nodes := m.services[m.set.Spec.ServiceName].Spec; nodes.ClusterIP != "None" || !nodes.PublishNotReadyAddresses {
			t.Errorf("%s: the nodes do not find each other before they are ready: %+v", name, nodes)
		}
		if m.budget.Spec.MaxUnavailable.IntValue() != 1 {
			t.Errorf("%s: the budget allows to evict %v at a time", name, m.budget.Spec.MaxUnavailable)
		}
		for _, service := range m.services {
			for _, p := range service.Spec.Ports {
				if !slices.ContainsFunc(pod.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.StrVal && c.Protocol == p.Protocol }) {
					t.Errorf("%s: no port %v of the pod for %s", name, p.TargetPort, service.Name)
				}
			}
		}
	}
}

func TestFull(t *testing.T) {
	m := render(t, full())
	if *m.set.Spec.Replicas != 5 || len(m.services) != 2+5 {
		t.Errorf("%d pods and %d services", *m.set.Spec.Replicas, len(m.services))
	}
	if got := m.services["world-voxeld-4"].Spec.Selector["statefulset.kubernetes.io/pod-name"]; got != "world-voxeld-4" {
		t.Errorf("the Service of a pod selects %q", got)
	}
	if m.ingress == nil || m.monitor == nil || m.ingress.Spec.TLS[0].SecretName != "tls" {
		t.Errorf("ingress %v, monitor %v", m.ingress, m.monitor)
	}
	pod := m.set.Spec.Template.Spec
	if len(pod.InitContainers) != 0 || len(pod.Volumes) != 3 || pod.Volumes[1].Secret.SecretName != "token" {
		t.Errorf("volumes %+v", pod.Volumes)
	}
	if from := pod.Containers[0].EnvFrom; len(from) != 1 || from[0].SecretRef.Name != "s3" {
		t.Errorf("variables from %+v", from)
	}
	for _, e := range []corev1.EnvVar{
		{Name: "VOXELD_JOIN", Value: "@/join/token"}, {Name: "VOXELD_MINECRAFT", Value: ":25566"}, {Name: "VOXELD_TRUSTED_PROXY", Value: "10.0.0.0/8,fd00::/8"},
		{Name: "NODE_NAME", Value: "$(POD_NAME).world-voxeld-nodes.games.svc"},
	} {
		if !slices.Contains(pod.Containers[0].Env, e) {
			t.Errorf("no variable %v", e)
		}
	}
}

// The pods get the time that a node takes to stop; what the image says of ports and user is what the chart says.
func TestAsImageAndDaemon(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	pod := render(t, nil).set.Spec.Template.Spec
	stop := regexp.MustCompile(`stopLimit = (\d+) \* time.Second`).FindStringSubmatch(read("../../cmd/voxeld/stack.go"))
	if stop == nil {
		t.Fatal("stack.go: no stopLimit")
	}
	if takes, err := strconv.ParseInt(stop[1], 10, 64); err != nil || *pod.TerminationGracePeriodSeconds <= takes {
		t.Errorf("pods have %d s to stop, a node takes %s s", *pod.TerminationGracePeriodSeconds, stop[1])
	}
	for _, want := range []string{"USER 65532:65532", "VOXELD_DATA_DIR=/data", "EXPOSE 4001/tcp 4001/udp 4002/tcp 8080/tcp 9102/tcp", `ENTRYPOINT ["/voxeld"]`} {
		if !strings.Contains(read("../../Dockerfile"), want) {
			t.Errorf("Dockerfile: no %s, which the chart relies on", want)
		}
	}
}

// cluster answers like the API server of one where the StatefulSet has so many pods. If there are several, they join.
func cluster(t *testing.T, pods int) *rest.Config {
	t.Helper()
	env := []any{values{"name": "VOXELD_METRICS", "value": ":9102"}}
	if pods > 1 {
		env = append(env, values{"name": "VOXELD_JOIN", "value": "@/join/token"})
	}
	mux := http.NewServeMux()
	reply := func(path string, v any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(v); err != nil {
				t.Error(err)
			}
		})
	}
	reply("/apis/apps/v1", values{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": []any{
		values{"name": "statefulsets", "namespaced": true, "kind": "StatefulSet", "verbs": []string{"get"}},
	}})
	reply("/apis/apps/v1/namespaces/games/statefulsets/world-voxeld", values{
		"kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": values{"name": "world-voxeld"}, "spec": values{
			"replicas": pods, "template": values{"spec": values{"containers": []any{values{"name": "voxeld", "env": env}}}},
		},
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// Two pods that end together may be most members of a region.
func TestFewerNodesOneByOne(t *testing.T) {
	for _, c := range []struct {
		is  int
		now values
		ok  bool
	}{
		{1, nil, true},
		{1, values{"joinSecret": "token"}, true},
		{5, values{"joinSecret": "token", "replicas": 5}, true},
		{5, values{"joinSecret": "token", "replicas": 4}, true},
		{5, values{"joinSecret": "token", "replicas": 3}, false},
		{3, nil, false}, // without the token: one pod
		{2, nil, false}, // without the token it might create another world
	} {
		if _, err := texts(t, c.now, cluster(t, c.is)); (err == nil) != c.ok {
			t.Errorf("%d pods, then %v: %v", c.is, c.now, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, v := range []values{{"antiAffinity": "none"}, {"ingress": values{"enabled": true}}, {"env": values{"VOXELD_BACKUP_KEEP": 1000000.0}}} {
		if _, err := texts(t, v, nil); err == nil {
			t.Errorf("%v is accepted", v)
		}
	}
}
