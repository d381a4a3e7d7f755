package pack_test

import (
	"math/rand/v2"

	"github.com/rvinformer/informer/internal/leaf/pack"
	"github.com/rvinformer/informer/internal/testkit/samples"
)

var cluster = samples.Cluster{Seed: 1}

// object is what a store puts into a pack.
type object struct {
	name, like string
	data       []byte
	number     int
	revision   int
}

// pods returns the first n pods of the cluster, in the order of a list, each after this number of
// updates.
func pods(n, revision int) []object {
	objects := make([]object, 0, n)
	for i, p := range cluster.Pods(0, n, revision) {
		data, err := p.Marshal()
		if err != nil {
			panic(err)
		}
		objects = append(objects, object{p.Namespace + "/" + p.Name, string(p.OwnerReferences[0].UID), data, i, revision})
	}
	return objects
}

// update makes the pod that o is after its next update.
func (o *object) update() {
	o.revision++
	data, err := cluster.Pod(o.number, o.revision).Marshal()
	if err != nil {
		panic(err)
	}
	o.data = data
}

// releases returns the first n custom resources of the cluster.
func releases(n int) []object {
	objects := make([]object, 0, n)
	for i := range n {
		u := cluster.Release(i, 0)
		data, err := u.MarshalJSON()
		if err != nil {
			panic(err)
		}
		objects = append(objects, object{u.GetNamespace() + "/" + u.GetName(), string(u.GetOwnerReferences()[0].UID), data, i, 0})
	}
	return objects
}

// hinted returns the objects with other hints.
func hinted(objects []object, like func(object) string) []object {
	for k, o := range objects {
		objects[k].like = like(o)
	}
	return objects
}

// each returns every step'th object, and with a large step lone ones of their owners.
func each(step int, objects []object) (some []object) {
	for k := 0; k < len(objects); k += step {
		some = append(some, objects[k])
	}
	return some
}

// fill puts the objects into a pack.
func fill(p *pack.Pack, objects []object) []pack.Ref {
	refs := make([]pack.Ref, len(objects))
	for k, o := range objects {
		refs[k] = p.Add([]byte(o.name), uint32(k), p.Prepare(o.like, 0, o.data))
	}
	return refs
}

// replace stores o in place of the object that refs[k] names.
func replace(p *pack.Pack, refs []pack.Ref, k int, o object) {
	d := p.Prepare(o.like, refs[k], o.data)
	old := refs[k]
	refs[k] = p.Add([]byte(o.name), uint32(k), d)
	if old != 0 {
		p.Drop(old)
	}
	p.Tidy(func(owner uint32, to pack.Ref) { refs[owner] = to })
}

// inRandomOrder returns each number below n times times, the same in each run.
func inRandomOrder(n, times int) []int {
	order := rand.New(rand.NewPCG(1, 1)).Perm(n * times)
	for k := range order {
		order[k] %= n
	}
	return order
}
