//! Shapes of transformer models, and how many parameters they have.

/// What a layer is made of, beyond its sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// GPT-3: two matrices in the feed-forward network, biases, layer norms, learned positions, and an output matrix
    /// that is the input embedding's.
    Gpt,
    /// Llama: three matrices (SwiGLU), no biases, RMS norms, rotary positions, an output matrix of its own.
    Llama,
}

/// The sizes of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelShape {
    /// What it is called.
    pub name: String,
    /// What a layer is made of.
    pub family: Family,
    /// Transformer layers.
    pub layers: u32,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Attention heads; they divide `hidden`.
    pub heads: u32,
    /// Heads of keys and values, fewer than `heads` in grouped-query attention; they divide `heads`.
    pub kv_heads: u32,
    /// Width of the feed-forward network, or of one expert.
    pub ffn: u32,
    /// Experts a layer; 0: the model is dense.
    pub experts: u32,
    /// Experts that a token visits in each layer; not used if the model is dense.
    pub top_k: u32,
    /// Words of the vocabulary.
    pub vocabulary: u32,
    /// Tokens of a training sequence.
    pub sequence: u32,
}

/// The models that have names. See [`ModelShape::find`] for where the figures come from.
fn named() -> [ModelShape; 9] {
    let mixtral_22b = mixture("8x22b", 56, 6_144, (48, 8), 16_384);
    [
        gpt("7b", 32, 4_096, 32, 50_257),
        ModelShape::default(),
        gpt("22b", 48, 6_144, 64, 51_200),
        gpt("175b", 96, 12_288, 96, 50_257),
        gpt("1t", 128, 25_600, 160, 51_200),
        mixture("8x7b", 32, 4_096, (32, 8), 14_336),
        mixture("8x13b", 40, 5_120, (40, 40), 13_824),
        mixtral_22b.clone(),
        ModelShape { name: "32x22b".into(), experts: 32, ..mixtral_22b },
    ]
}

fn gpt(name: &str, layers: u32, hidden: u32, heads: u32, vocabulary: u32) -> ModelShape {
    ModelShape {
        name: name.into(),
        family: Family::Gpt,
        layers,
        hidden,
        heads,
        kv_heads: heads,
        ffn: 4 * hidden,
        experts: 0,
        top_k: 0,
        vocabulary,
        sequence: 2_048,
    }
}

fn mixture(name: &str, layers: u32, hidden: u32, (heads, kv_heads): (u32, u32), ffn: u32) -> ModelShape {
    ModelShape {
        name: name.into(),
        family: Family::Llama,
        layers,
        hidden,
        heads,
        kv_heads,
        ffn,
        experts: 8,
        top_k: 2,
        vocabulary: 32_000,
        sequence: 4_096,
    }
}

impl Default for ModelShape {
    /// GPT-3 13B.
    fn default() -> ModelShape {
        gpt("13b", 40, 5_120, 40, 50_257)
    }
}

/// Parameter counts have 128 bits: enough for every shape that [`Training::validate`](super::Training::validate)
/// lets pass.
impl ModelShape {
    /// The model of a name, in either case.
    ///
    /// * `7b`, `13b`, `175b`: GPT-3 (Brown et al. 2020, table 2.1), 13B with the width 5,120 that 40 heads of 128 make
    ///   instead of the printed 5,140; vocabulary of GPT-2.
    /// * `1t`: Narayanan et al. 2021 (Efficient Large-Scale Language Model Training on GPU Clusters, table 1).
    /// * `22b`: Korthikanti et al. 2022 (Reducing Activation Recomputation in Large Transformer Models).
    /// * `8x7b`, `8x22b`: Mixtral as its makers published it (Jiang et al. 2024; the configuration files of v0.1). The
    ///   sequences of its training are not published: 4,096 is assumed.
    /// * `8x13b`, `32x22b`: only names in the Wormhole paper. The shapes are assumed: Llama 2 13B (Touvron et al. 2023)
    ///   with its feed-forward network eight times, and Mixtral 8x22B with 32 experts; two experts a token.
    pub fn find(name: &str) -> Option<ModelShape> {
        named().into_iter().find(|shape| shape.name.eq_ignore_ascii_case(name))
    }

    /// All names that [`find`](ModelShape::find) knows.
    pub fn names() -> Vec<String> {
        named().into_iter().map(|shape| shape.name).collect()
    }

    /// Whether layers have experts.
    pub fn is_mixture(&self) -> bool {
        self.experts > 0
    }

    /// All parameters.
    pub fn parameters(&self) -> u128 {
        let layer = self.shared_layer_parameters() + self.expert_layer_parameters();
        self.outer_parameters() + u128::from(self.layers) * layer
    }

    /// Parameters that take part in the computation of one token.
    pub fn active_parameters(&self) -> u128 {
        let visited = if self.is_mixture() { u128::from(self.top_k) * self.ffn_parameters() } else { 0 };
        self.outer_parameters() + u128::from(self.layers) * (self.shared_layer_parameters() + visited)
    }

    /// Whether the output matrix is the input embedding's.
    pub fn is_tied(&self) -> bool {
        self.family == Family::Gpt
    }

    /// Parameters before and after the layers.
    fn outer_parameters(&self) -> u128 {
        let head = if self.is_tied() { 0 } else { self.vocabulary_matrix() };
        self.input_parameters() + self.norm_parameters() + head
    }

    /// Parameters before the first layer: embeddings of words, and of positions if they are learned.
    pub(super) fn input_parameters(&self) -> u128 {
        let positions = match self.family {
            Family::Gpt => u128::from(self.sequence) * u128::from(self.hidden),
            Family::Llama => 0,
        };
        self.vocabulary_matrix() + positions
    }

    /// Parameters of the input embedding of words, and of the output matrix.
    pub(super) fn vocabulary_matrix(&self) -> u128 {
        u128::from(self.vocabulary) * u128::from(self.hidden)
    }

    /// Parameters of a layer without its experts.
    pub(super) fn shared_layer_parameters(&self) -> u128 {
        let biases = match self.family {
            Family::Gpt => 4 * u128::from(self.hidden),
            Family::Llama => 0,
        };
        let rest = if self.is_mixture() { self.router_matrix() } else { self.ffn_parameters() };
        self.attention_matrices() + biases + 2 * self.norm_parameters() + rest
    }

    /// Parameters of all experts of a layer.
    pub(super) fn expert_layer_parameters(&self) -> u128 {
        u128::from(self.experts) * self.ffn_parameters()
    }

    /// Parameters of the matrices of queries, keys, values and output.
    pub(super) fn attention_matrices(&self) -> u128 {
        let hidden = u128::from(self.hidden);
        let kv = hidden * u128::from(self.kv_heads) / u128::from(self.heads);
        2 * hidden * (hidden + kv)
    }

    /// Parameters of the matrix that rates experts.
    pub(super) fn router_matrix(&self) -> u128 {
        u128::from(self.hidden) * u128::from(self.experts)
    }

    /// Parameters of the matrices of a feed-forward network, or of one expert.
    pub(super) fn ffn_matrices(&self) -> u128 {
        let matrices = match self.family {
            Family::Gpt => 2,
            Family::Llama => 3,
        };
        matrices * u128::from(self.hidden) * u128::from(self.ffn)
    }

    fn ffn_parameters(&self) -> u128 {
        let biases = match self.family {
            Family::Gpt => u128::from(self.hidden) + u128::from(self.ffn),
            Family::Llama => 0,
        };
        self.ffn_matrices() + biases
    }

    /// Parameters of a norm: scales, and for layer norms shifts.
    pub(super) fn norm_parameters(&self) -> u128 {
        match self.family {
            Family::Gpt => 2 * u128::from(self.hidden),
            Family::Llama => u128::from(self.hidden),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &str) -> ModelShape {
        ModelShape::find(name).expect(name)
    }

    #[test]
    fn parameters_are_as_published() {
        let dense = [("7b", 6.7e9), ("13b", 13.0e9), ("22b", 22e9), ("175b", 175e9), ("1t", 1_008e9)];
        for (name, parameters) in dense.into_iter().chain([("8x7b", 46.7e9)]) {
            let error = shape(name).parameters() as f64 / parameters - 1.0;
            assert!(error.abs() < 0.02, "{name}: {error}");
        }
        // The sizes of the published files, in two bytes a parameter.
        assert_eq!(2 * shape("8x7b").parameters(), 93_405_585_408);
        assert_eq!(2 * shape("8x22b").parameters(), 281_241_268_224);
        // "12.9B" and "39B active parameters".
        assert_eq!(shape("8x7b").active_parameters() / 100_000_000, 128);
        assert_eq!(shape("8x22b").active_parameters() / 1_000_000_000, 39);
    }

    #[test]
    fn a_gpt_layer_is_that_of_the_formula() {
        // Narayanan et al. 2021, equation 2: 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)); and the last norm.
        let gpt = shape("175b");
        let (l, h, v, s) = (96, 12_288, 50_257, 2_048);
        assert_eq!(gpt.parameters(), 12 * l * h * h + 13 * l * h + (v + s) * h + 2 * h);
        assert_eq!(gpt.active_parameters(), gpt.parameters());
    }

    #[test]
    fn names_are_found_in_either_case() {
        assert!(ModelShape::names().iter().all(|name| shape(name).name == *name));
        assert_eq!(shape("8X7B").experts, 8);
        assert_eq!(ModelShape::find("9b"), None);
    }
}
