package docs

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// An object is a manifest with the fields of the Kubernetes API that the pages use. Other fields are errors.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
	Data       map[string]string // of a ConfigMap
	Spec       struct {
		Replicas       int
		Strategy       any
		MaxUnavailable int `yaml:"maxUnavailable"`
		Selector       any // MatchLabels; in a Service the labels themselves
		Ports          []struct {
			Name        string
			Port        int
			TargetPort  string `yaml:"targetPort"`
			AppProtocol string `yaml:"appProtocol"`
		}
		Template struct {
			Metadata metadata
			Spec     pod
		}
	}
}

type metadata struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
}

type pod struct {
	AutomountServiceAccountToken  *bool       `yaml:"automountServiceAccountToken"`
	TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               podContext  `yaml:"securityContext"`
	InitContainers                []container `yaml:"initContainers"`
	Containers                    []container
	Volumes                       []struct {
		Name      string
		ConfigMap struct{ Name string } `yaml:"configMap"`
		EmptyDir  *struct{}             `yaml:"emptyDir"`
	}
}

type podContext struct {
	RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
	RunAsUser      int                   `yaml:"runAsUser"`
	RunAsGroup     int                   `yaml:"runAsGroup"`
	FSGroup        int                   `yaml:"fsGroup"`
	SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
}

type container struct {
	Name, Image   string
	RestartPolicy string `yaml:"restartPolicy"`
	Args          []string
	Env           []struct{ Name, Value string }
	EnvFrom       []struct {
		SecretRef struct {
			Name     string
			Optional bool
		} `yaml:"secretRef"`
	} `yaml:"envFrom"`
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe    *probe `yaml:"startupProbe"`
	LivenessProbe   *probe `yaml:"livenessProbe"`
	ReadinessProbe  *probe `yaml:"readinessProbe"`
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext struct {
		RunAsNonRoot             bool  `yaml:"runAsNonRoot"`
		RunAsUser                int   `yaml:"runAsUser"`
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
	VolumeMounts []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
	PeriodSeconds    int                         `yaml:"periodSeconds"`
	TimeoutSeconds   int                         `yaml:"timeoutSeconds"`
	FailureThreshold int                         `yaml:"failureThreshold"`
}

// versions are the versions that Kubernetes serves the kinds of object at.
var versions = map[string]string{"ConfigMap": "v1", "Service": "v1", "Deployment": "apps/v1", "PodDisruptionBudget": "policy/v1"}

// objects reads manifests strictly.
func objects(text string) (all []object, err error) {
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	for {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if versions[o.Kind] != o.APIVersion {
			return nil, errors.New(o.APIVersion + " has no " + o.Kind)
		}
		all = append(all, o)
	}
}

// labels returns the labels that an object selects pods by.
func labels(o *object) map[string]any {
	all, _ := o.Spec.Selector.(map[string]any)
	if match, ok := all["matchLabels"].(map[string]any); ok {
		return match
	}
	return all
}

func one(t *testing.T, all []object, kind string) *object {
	t.Helper()
	i := slices.IndexFunc(all, func(o object) bool { return o.Kind == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return &all[i]
}

// runs starts weir with the arguments and the file of the manifests. Only ports and the upstream's address differ. It checks
// the manifests' ports, probes, paths and grace period.
func runs(t *testing.T, all []object, upstream, played string) *served.Process {
	t.Helper()
	deployment, settings := one(t, all, "Deployment"), one(t, all, "ConfigMap")
	p := &deployment.Spec.Template.Spec
	for i := range all {
		for name, value := range labels(&all[i]) {
			if got := deployment.Spec.Template.Metadata.Labels[name]; got != value {
				t.Errorf("the %s selects %s=%v, and pods have %q", all[i].Kind, name, value, got)
			}
		}
	}
	i := slices.IndexFunc(slices.Concat(p.InitContainers, p.Containers), func(c container) bool { return c.Name == "weir" })
	if i < 0 {
		t.Fatal("no container is weir's")
	}
	weir := slices.Concat(p.InitContainers, p.Containers)[i]
	if sidecar := len(p.InitContainers) > 0; sidecar != (weir.RestartPolicy == "Always") {
		t.Errorf("its restartPolicy is %q: only a sidecar restarts by itself", weir.RestartPolicy)
	}
	if uid := max(p.SecurityContext.RunAsUser, weir.SecurityContext.RunAsUser); uid != 65532 || weir.Image != "weir" {
		t.Errorf("image %s runs as user %d, and is built for 65532", weir.Image, uid)
	}
	var file string // path of the configuration in the container
	for _, m := range weir.VolumeMounts {
		found := false
		for _, v := range p.Volumes {
			if v.Name == m.Name {
				found = true
				if v.ConfigMap.Name == settings.Metadata.Name {
					file = path.Join(m.MountPath, "weir.yaml")
				}
			}
		}
		if !found {
			t.Errorf("the volume %s does not exist", m.Name)
		}
	}
	if file == "" || !slices.Contains(weir.Args, file) {
		t.Fatalf("the arguments %q do not name %q", weir.Args, file)
	}
	text := settings.Data["weir.yaml"]
	f, err := config.Parse("weir.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	ports := make(map[string]string)
	for _, port := range weir.Ports {
		ports[port.Name] = ":" + strconv.Itoa(port.ContainerPort)
	}
	for name, addr := range map[string]string{"calls": f.Listen, "admin": f.Admin} {
		if port, named := ports[name]; named && port != addr {
			t.Errorf("weir listens at %s, and the port %s is %s", addr, name, port)
		}
	}
	if need := f.LameDuck + f.Drain + 5*time.Second; time.Duration(p.TerminationGracePeriodSeconds)*time.Second < need {
		t.Errorf("the pod is killed after %d s, and weir needs %v", p.TerminationGracePeriodSeconds, need)
	}
	for _, r := range [][2]string{{f.Admin, "127.0.0.1:0"}, {f.Listen, "127.0.0.1:0"}, {upstream, played}} {
		text = strings.ReplaceAll(text, `"`+r[0]+`"`, `"`+r[1]+`"`)
	}
	if !strings.Contains(text, "\nlisten:") && !strings.HasPrefix(text, "listen:") {
		text = "listen: 127.0.0.1:0\n" + text
	}
	w := served.StartArgs(t, text, file, weir.Args)
	for _, probed := range []*probe{weir.StartupProbe, weir.LivenessProbe, weir.ReadinessProbe} {
		if probed == nil {
			continue
		}
		if probed.HTTPGet.Port != "admin" || ports["admin"] == "" {
			t.Errorf("a probe asks the port %s", probed.HTTPGet.Port)
		}
		// The kubelet requests the pod by its address.
		if status := get(t, "http://"+w.Serve.Admin+probed.HTTPGet.Path, "10.1.2.3:8081"); status != http.StatusOK {
			t.Errorf("the probe of %s gets %d", probed.HTTPGet.Path, status)
		}
	}
	return w
}

func get(t *testing.T, url, host string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// plays starts an upstream that counts its calls.
func plays(t *testing.T) (url string, calls *atomic.Int64) {
	calls = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	t.Cleanup(s.Close)
	return s.URL, calls
}

// The manifests of an egress gateway start a weir that pods reach by the service's name.
func TestManifestsOfGatewayStartWeir(t *testing.T) {
	dir := filepath.Join(root, "deploy/kubernetes")
	var kustomization struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Resources  []string
		ConfigMaps []struct {
			Name  string
			Files []string
		} `yaml:"configMapGenerator"`
		Images []struct {
			Name    string
			NewName string `yaml:"newName"`
			NewTag  string `yaml:"newTag"`
		}
	}
	d := yaml.NewDecoder(strings.NewReader(text(t, filepath.Join(dir, "kustomization.yaml"))))
	d.KnownFields(true)
	if err := d.Decode(&kustomization); err != nil {
		t.Fatal(err)
	}
	var all []object
	for _, name := range kustomization.Resources {
		some, err := objects(text(t, filepath.Join(dir, name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, some...)
	}
	for _, c := range kustomization.ConfigMaps {
		o := object{APIVersion: "v1", Kind: "ConfigMap", Metadata: metadata{Name: c.Name}, Data: map[string]string{}}
		for _, name := range c.Files {
			o.Data[name] = text(t, filepath.Join(dir, name))
		}
		all = append(all, o)
	}
	played, calls := plays(t)
	w := runs(t, all, "https://api.example.com", played)
	service := one(t, all, "Service")
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 80 || service.Spec.Ports[0].TargetPort != "calls" {
		t.Errorf("the service has the ports %+v", service.Spec.Ports)
	}
	if status := get(t, "http://"+w.Serve.Listen+"/example/", service.Metadata.Name); status != http.StatusOK || calls.Load() != 1 {
		t.Errorf("a call to the service gets %d, and %d reach the upstream", status, calls.Load())
	}
}

// The page's manifest starts a weir that the pod's program reaches at the address in its environment.
func TestManifestOfSidecarStartsWeir(t *testing.T) {
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s Sample) bool { return s.File == "docs/how-to/run-on-kubernetes.md" && s.Kind == "yaml" })
	if i < 0 {
		t.Fatal("the page has no manifest")
	}
	manifests, err := objects(all[i].Text)
	if err != nil {
		t.Fatal(err)
	}
	played, calls := plays(t)
	w := runs(t, manifests, "https://partner.example.com", played)
	for _, c := range one(t, manifests, "Deployment").Spec.Template.Spec.Containers {
		for _, e := range c.Env {
			addr, rest, found := strings.Cut(e.Value, "127.0.0.1:8080")
			if !found {
				continue
			}
			if status := get(t, addr+w.Serve.Listen+rest+"/", ""); status != http.StatusOK {
				t.Errorf("a call to %s gets %d", e.Value, status)
			}
		}
	}
	if calls.Load() == 0 {
		t.Error("the program has no address of weir's")
	}
}

func TestManifestWithUnknownFieldIsRefused(t *testing.T) {
	for _, text := range []string{"kind: Service\napiVersion: v1\nspec: {port: []}\n", "kind: Deployment\napiVersion: v1\n"} {
		if _, err := objects(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
