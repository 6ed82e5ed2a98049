/* MPI datatypes of layouts. */
#include "run.h"

#include <stdlib.h>

MPI_Datatype basic_type(int element)
{
    return element == 8 ? MPI_DOUBLE : element == 4 ? MPI_INT : MPI_BYTE;
}

void describe_side(struct side *side, const struct layout *layout, long bytes, int element)
{
    side->segments = malloc(MAX_SEGMENTS * sizeof *side->segments);
    if (side->segments == NULL)
        fail("no memory for a datatype");
    side->count = find_segments(layout, bytes, element, side->segments, &side->span);
    side->segments = realloc(side->segments, (size_t)(side->count + 1) * sizeof *side->segments);
}

void forget_side(struct side *side)
{
    free(side->segments);
    side->segments = NULL;
}

/* A list of runs; as a struct or as blocks of bytes. */
static void make_list(struct side *side, bool is_struct, int element, MPI_Datatype *made)
{
    int *lengths = malloc((size_t)side->count * sizeof *lengths);
    MPI_Aint *places = malloc((size_t)side->count * sizeof *places);
    MPI_Datatype *types = malloc((size_t)side->count * sizeof *types);
    if (lengths == NULL || places == NULL || types == NULL)
        fail("no memory for a datatype");
    for (int i = 0; i < side->count; i++) {
        lengths[i] = (int)(side->segments[i].length / element);
        places[i] = side->segments[i].offset;
        types[i] = basic_type(element);
    }
    if (is_struct)
        MPI_Type_create_struct(side->count, lengths, places, types, made);
    else
        MPI_Type_create_hindexed(side->count, lengths, places, basic_type(element), made);
    free(lengths);
    free(places);
    free(types);
}

void make_type(struct side *side, const struct layout *layout, long bytes, int element)
{
    side->type_is_made = layout->kind != CONTIGUOUS;
    side->elements = 1;
    const bool whole_blocks = side->type_is_made && bytes % layout->block == 0;
    const int blocks = whole_blocks ? (int)(bytes / layout->block) : 0, block = (int)(layout->block / element);
    if (!side->type_is_made) {
        side->type = basic_type(element);
        side->elements = (int)(bytes / element);
        return;
    }
    if (layout->kind == VECTOR && whole_blocks) {
        MPI_Type_vector(blocks, block, (int)(layout->stride / element), basic_type(element), &side->type);
    } else if (layout->kind == RESIZED && whole_blocks) {
        MPI_Datatype one;
        MPI_Type_contiguous(block, basic_type(element), &one);
        MPI_Type_create_resized(one, 0, layout->stride, &side->type);
        MPI_Type_free(&one);
        side->elements = blocks;
    } else {
        make_list(side, layout->kind == STRUCT, element, &side->type);
    }
    MPI_Type_commit(&side->type);
}

void free_type(struct side *side)
{
    if (side->type_is_made)
        MPI_Type_free(&side->type);
    side->type_is_made = false;
}
