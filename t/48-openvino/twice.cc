/* twice.cc - an extension of OpenVINO with one operator: Twice of X is 2 X */

#include <openvino/core/extension.hpp>
#include <openvino/core/op_extension.hpp>
#include <openvino/op/op.hpp>

class Twice : public ov::op::Op {
public:
    OPENVINO_OP("Twice", "own");

    Twice() = default;

    explicit Twice(const ov::Output<ov::Node> &x)
        : Op({x})
    {
        constructor_validate_and_infer_types();
    }

    void
    validate_and_infer_types() override
    {
        set_output_type(0, get_input_element_type(0),
            get_input_partial_shape(0));
    }

    std::shared_ptr<ov::Node>
    clone_with_new_inputs(const ov::OutputVector &inputs) const override
    {
        return std::make_shared<Twice>(inputs.at(0));
    }

    bool
    has_evaluate() const override
    {
        return true;
    }

    bool
    evaluate(ov::TensorVector &out, const ov::TensorVector &in) const override
    {
        out[0].set_shape(in[0].get_shape());
        for (size_t i = 0; i < in[0].get_size(); i++) {
            out[0].data<float>()[i] = 2 * in[0].data<float>()[i];
        }
        return true;
    }
};

OPENVINO_CREATE_EXTENSIONS(std::vector<ov::Extension::Ptr>({
    std::make_shared<ov::OpExtension<Twice>>()}));
