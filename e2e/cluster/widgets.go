package cluster

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// WidgetResource names the custom resource that tests fill the server with.
var WidgetResource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

const (
	// servedTimeout is how long the API server may take to serve a new resource.
	servedTimeout = time.Minute
	// forgottenTimeout is how long it may take to forget one. The server does not delete an object
	// that is created while it deletes the others: it waits a minute for all to be gone, and then
	// deletes once more.
	forgottenTimeout = 4 * time.Minute
)

// CreateWidgetDefinition makes the server know widgets, and returns when it
// serves them. Creating them twice is no error.
func (c *Cluster) CreateWidgetDefinition(ctx context.Context) error {
	client, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("client for custom resource definitions: %w", err)
	}
	definition := widgetDefinition()
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, definition, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s: %w", definition.Name, err)
	}
	widgets, err := c.Widgets(metav1.NamespaceAll)
	if err != nil {
		return err
	}
	// The condition Established comes before every handler knows of the
	// resource; only an answer proves that it is served.
	var last error
	err = wait.PollUntilContextTimeout(ctx, readyPoll, servedTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = widgets.Versions(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s is served: %w (last answer: %v)", definition.Name, err, last)
	}
	return nil
}

// DeleteWidgetDefinition makes the server forget widgets, those that there are
// included, and returns when it has.
func (c *Cluster) DeleteWidgetDefinition(ctx context.Context) error {
	client, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("client for custom resource definitions: %w", err)
	}
	definitions, name := client.ApiextensionsV1().CustomResourceDefinitions(), widgetDefinition().Name
	if err := definitions.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, readyPoll, forgottenTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = definitions.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(last), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s is gone: %w (last answer: %v)", name, err, last)
	}
	return nil
}

func widgetDefinition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: WidgetResource.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: WidgetResource.Resource, Singular: "widget", Kind: "Widget", ListKind: "WidgetList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name:    WidgetResource.Version,
				Served:  true,
				Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type:                   "object",
						XPreserveUnknownFields: &preserve,
					},
				},
			}},
		},
	}
}

// Widgets returns the widgets of a namespace, once they are defined.
func (c *Cluster) Widgets(namespace string) (*Objects, error) {
	return c.objects(namespace, WidgetResource, newWidget)
}

func newWidget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": WidgetResource.GroupVersion().String(),
		"kind":       "Widget",
		"metadata": map[string]any{
			"name":   name,
			"labels": map[string]any{"step": "created"},
		},
		"spec": map[string]any{
			"size":  int64(3),
			"title": "widget " + name + ": \"quoted\", { and [ and ü",
			"parts": []any{map[string]any{"metadata": map[string]any{"name": "not the name"}}},
		},
	}}
}
