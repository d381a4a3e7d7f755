package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/rvinformer/informer/bench/podserver"
	"github.com/rvinformer/informer/bench/race"
	"github.com/rvinformer/informer/e2e/cluster"
)

// writers is how many requests are under way at once while pods are created.
const writers = 16

// realHost builds and starts a kube-apiserver and an etcd, and creates the pods of a simulated
// server in them.
func realHost(pods int) *host {
	return &host{start: func(ctx context.Context) (target race.Target, stop func() error, err error) {
		binaries, err := cluster.Build(ctx, "")
		if err != nil {
			return target, nil, err
		}
		c, err := cluster.Start(ctx, cluster.Options{Binaries: binaries})
		if err != nil {
			return target, nil, err
		}
		config := c.Config()
		if err := createPods(ctx, config, pods); err != nil {
			return target, nil, errors.Join(err, c.Close())
		}
		return race.Target{Host: config.Host, CA: config.CAData, Token: config.BearerToken, Objects: pods, PIDs: c.PIDs()}, c.Close, nil
	}}
}

func createPods(ctx context.Context, config *rest.Config, pods int) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	created := map[string]bool{}
	for i := range pods {
		name := podserver.Pod(i, pods).Namespace
		if created[name] {
			continue
		}
		created[name] = true
		if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var writing sync.WaitGroup
	for writer := range writers {
		writing.Go(func() {
			for i := writer; i < pods && ctx.Err() == nil; i += writers {
				if err := createPod(ctx, client, podserver.Pod(i, pods)); err != nil {
					cancel(fmt.Errorf("creating pod %d: %w", i, err))
				}
			}
		})
	}
	writing.Wait()
	return context.Cause(ctx)
}

// createPod creates a pod and then its status, as a kubelet would.
func createPod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	status := pod.Status
	pod.UID, pod.ResourceVersion, pod.ManagedFields = "", "", nil
	pod, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		return err
	}
	pod.Status = status
	_, err = client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: "kubelet"})
	return err
}
